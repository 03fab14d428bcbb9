"""POST to visible while a site is flooded: on the quiet sites beside it, and on that site itself.

The flood comes from a process of its own. A change of the flooded site waits for the next publish
of that site, one each publish interval; a shorter interval does not help for long, since its files
are dated to the second and may not run ahead of the clock.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event as Signal
from statistics import median

from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from tests.bench.accept import workload
from tests.bench.bed import server
from tests.bench.corpus import Corpus
from tests.bench.load import Workload, steady
from tests.bench.report import Figure, Report, compared, p99
from tests.bench.scale import Scale
from tests.bench.service import SITE, Service, events_path, post
from tests.bench.visible import AGAINST, Probe

INTERVAL_MS = 1_000
TARGET_PER_S = 1_000
_MOST_S = 120.0
_POLL_S = 0.001
_PAUSE_S = 0.1


def loaded(
    report: Report, running: Service, sites: Mapping[str, Sequence[Event]], corpus: Corpus,
    scale: Scale, half: float,
) -> None:  # fmt: skip
    """Both, at `half` of the single events a second that the service sustains, and at TARGET_PER_S
    in small batches.
    """
    probed, others = sites[SITE][: scale.rounds], sites[SITE][scale.rounds :]
    for size, per_s, what in ((1, half, "signed one by one"), (10, TARGET_PER_S, "by tens")):
        with flood(running, workload(running, others, corpus, size), per_s) as end:
            pairs = quiet(running, sites, corpus, scale, f"q{size}")
            waits = itself(running, probed, corpus, f"i{size}")
            rate = f"{end():,.0f} events/s, {what}"
        name = f"POST to visible on a quiet site, while another takes {rate}"
        report.add(compared(name, "ms", pairs, AGAINST, at_most=3))
        high, bare = p99([ours for ours, _ in pairs]), median(bare for _, bare in pairs)
        report.add(
            Figure(
                f"p99 of these {len(pairs)} POSTs", "ms", high, None, "p50 of the same", bare, None,
                high / bare, "<= 10x", high <= 10 * bare,
            )
        )  # fmt: skip
        wait = median(waits)
        report.add(
            Figure(
                f"POST to visible on the site that takes {rate}", "ms", wait, p99(waits),
                "its publish interval", INTERVAL_MS, None, wait / INTERVAL_MS,
            )
        )  # fmt: skip


@contextmanager
def flood(running: Service, load: Workload, per_s: float) -> Iterator[Callable[[], float]]:
    """Send `load` to SITE from another process until the function is called that this yields, or
    until the end of the block; the function returns how many events a second were accepted.
    """
    context = multiprocessing.get_context("fork")
    stop, (here, there) = context.Event(), context.Pipe()
    arguments = (running.address, load, per_s, stop, there)
    process = context.Process(target=_flood, args=arguments, daemon=True)
    process.start()
    here.recv()  # it has begun

    def end() -> float:
        stop.set()
        return float(here.recv())

    try:
        yield end
    finally:
        stop.set()
        process.join()


def _flood(address: str, load: Workload, per_s: float, stop: Signal, there: Connection) -> None:
    until_s = time.monotonic() + _MOST_S
    there.send(None)

    def over() -> bool:
        return stop.is_set() or time.monotonic() > until_s

    there.send(steady(address, events_path(), load, f"flood-{load.size}", per_s, over))


def quiet(
    running: Service, sites: Mapping[str, Sequence[Event]], corpus: Corpus, scale: Scale, name: str
) -> list[tuple[float, float]]:
    """POST to visible on the other sites by turns, so that each is idle when its turn comes."""
    others = [site for site in sites if site != SITE]
    with server() as client:
        probes = {site: Probe(running, site, client, name) for site in others}
        pairs = []
        for turn in range(scale.rounds):
            site = others[turn % len(others)]
            page = sites[site][turn * 7 % len(sites[site])]
            pairs.append(probes[site].pair(corpus.changed(page)))
    return pairs[scale.warm :]


def itself(running: Service, pages: Sequence[Event], corpus: Corpus, name: str) -> list[float]:
    """Milliseconds until `pages` are visible on SITE, POSTed at random moments."""
    root, connection, chance = running.root, running.connect(), random.Random(1)
    index, seen, due = root / "sitemap.xml", 0, 0.0
    left, pending, waits = list(pages), dict[bytes, float](), list[float]()
    deadline = time.monotonic() + _MOST_S
    while left or pending:
        assert time.monotonic() < deadline, "waited in vain"
        if left and time.perf_counter() >= due:
            page = corpus.changed(left.pop())
            delivery = running.signed([page], f"{name}-{len(left)}")
            due = time.perf_counter() + chance.uniform(0, 2 * _PAUSE_S)
            pending[fragments.render(Entry(str(page.loc), page.lastmod))] = time.perf_counter()
            post(connection, delivery)
        inode = os.stat(index).st_ino  # the index is replaced last
        if inode != seen:
            seen, now = inode, time.perf_counter()
            listed = b"".join(path.read_bytes() for path in root.glob("pages-*.xml"))
            for fragment in [one for one in pending if one in listed]:
                waits.append((now - pending.pop(fragment)) * 1e3)
        time.sleep(_POLL_S)
    return waits
