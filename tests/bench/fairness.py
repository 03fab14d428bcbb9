"""Accepted to visible on quiet sites, while others drain floods: with none, with one, and with more
floods than a worker has threads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice
from statistics import median

from shared.batches import batches
from shared.events.event import Event
from shared.store.connection import connect
from shared.store.inbox.inbox import Inbox
from shared.store.operations.queues import EVENTS, Queues
from tests.bench.corpus import BASE, Corpus
from tests.bench.report import Figure, Report, p99
from tests.bench.scale import Scale
from tests.bench.service import Service, base_of, post, service, until

QUIET = tuple(f"quiet{number}" for number in range(1, 51))
FLOODS = tuple(f"flood{number}" for number in range(1, 6))
"""One more than the threads of a worker."""
_BATCH = 1_000
_IDLE_S = 1.1  # longer than the publish interval


def fairness(report: Report, corpus: Corpus, scale: Scale) -> None:
    """Measure the quiet sites alone, beside one flood, and beside all."""
    with service(*QUIET, *FLOODS) as running:
        pages = list(corpus.pages(1_000))
        probe = _Probe(running, pages, scale)
        probe.waits(len(QUIET))  # the first publish of a site writes more
        alone = probe.waits(scale.probes)
        for floods in (FLOODS[:1], FLOODS):
            until(lambda floods=floods: not any(map(probe.waiting, floods)), 0.2)
            _flood(running, floods, pages, scale.flood)
            waits = probe.waits(scale.probes, floods)
            what = f"POST to visible on {len(QUIET)} quiet sites, beside {len(floods)} flooded"
            against = f"the same without floods; {len(waits)} events beside them"
            report.add(_compared(f"{what}: p50", median(waits), against, median(alone)))
            report.add(_compared(f"{what}: p99", p99(waits), against, p99(alone)))


def _compared(name: str, value: float, against: str, bare: float) -> Figure:
    return Figure(name, "ms", value, None, against, bare, None, value / bare)


def _flood(running: Service, sites: Sequence[str], pages: Sequence[Event], many: int) -> None:
    """Let `many` events wait at each of `sites`, and wake them together."""
    with connect(running.store, 60.0) as client:
        for site in sites:
            Queues(client, site).pause(EVENTS, "benchmark")
            own = [replace(page, loc=str(page.loc).replace(BASE, base_of(site))) for page in pages]
            for part in batches(islice(cycle(own), many), _BATCH):
                Inbox(client, site).accept(part)
        for site in sites:
            Queues(client, site).resume(EVENTS)
            Inbox(client, site).sleep()
            page = replace(pages[0], loc=str(pages[0].loc).replace(BASE, base_of(site)))
            ident = f"flood-{site}-{time.monotonic_ns()}"
            post(running.connect(), running.signed([page], ident), site)


class _Probe:
    """Sends one event to one quiet site after the other, each idle for longer than its publish
    interval.
    """

    def __init__(self, running: Service, pages: Sequence[Event], scale: Scale) -> None:
        self._running, self._pages, self._pause = running, cycle(pages), scale.probe_s
        self._last, self._sent = dict.fromkeys(QUIET, 0.0), 0
        self._turn, self._client = cycle(QUIET), connect(running.store, 60.0)

    def waiting(self, site: str) -> bool:
        """True if events wait at `site`."""
        return Inbox(self._client, site).waiting() > 0

    def waits(self, many: int, floods: Sequence[str] = ()) -> list[float]:
        """Milliseconds from each POST until the site's index is replaced, the last of its files;
        of `many` events, or fewer if the `floods` were drained before.
        """
        self._connection = self._running.connect()  # an idle one was closed
        found = list[float]()
        for site in islice(self._turn, many):
            found.append(self._wait(site))
            if floods and not all(map(self.waiting, floods)):
                break
        return found

    def _wait(self, site: str) -> float:
        index = self._running.roots[site] / "sitemap.xml"
        until(lambda: time.monotonic() > self._last[site] + _IDLE_S, 0.01)
        before = os.stat(index).st_ino if index.exists() else 0
        self._sent += 1
        page = next(self._pages)
        loc = str(page.loc).replace(BASE, base_of(site)) + f"-{self._sent}"
        delivery = self._running.signed([replace(page, loc=loc)], f"probe-{self._sent}")
        began = time.perf_counter()
        post(self._connection, delivery, site)
        until(lambda: index.exists() and os.stat(index).st_ino != before, 0.000_2)
        took = time.perf_counter() - began
        self._last[site] = time.monotonic()
        until(lambda: time.perf_counter() > began + self._pause, 0.005)
        return took * 1e3
