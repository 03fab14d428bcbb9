"""How many events a second are accepted, next to a bare route behind the same server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from time import perf_counter

import redis

from shared.batches import batches
from shared.events.event import Event
from shared.store.connection import connect
from shared.store.inbox.inbox import Inbox
from shared.store.keys import Keys
from shared.store.operations.queues import EVENTS, Queues
from tests.bench.bare_route import PATH, bare_route
from tests.bench.corpus import Corpus
from tests.bench.load import CONNECTIONS, Workload, most
from tests.bench.report import Figure, Report, compared
from tests.bench.scale import Scale
from tests.bench.service import SITE, Service, events_path, items, ndjson, until

AGAINST = "bare Flask route, one durable XADD"


def workload(running: Service, pages: Sequence[Event], corpus: Corpus, size: int) -> Workload:
    """`pages` in deliveries of `size`, twice: each time all of them change again.

    One event is a JSON object, up to 100 are an array, more are NDJSON.
    """
    bodies, size = [], min(size, len(pages))
    for _ in range(2):
        for part in batches([corpus.changed(page) for page in pages], size):
            texts = items(part)
            array = texts[0] if size == 1 else f"[{','.join(texts)}]"
            bodies.append(array.encode() if size <= 100 else ndjson(part))
    kind = "application/json" if size <= 100 else "application/x-ndjson"
    return Workload(running.key, bodies, size, kind)


class Slices:
    """Slices of a second or two, ours and those of the route at `bare` by turns."""

    def __init__(self, running: Service, bare: str, client: redis.Redis, scale: Scale) -> None:
        self._running, self._bare, self._scale = running, bare, scale
        self._client, self._inbox = client, Inbox(client, SITE)
        self.applied: list[float] = []
        """Events a second of ours, until the last of a slice was applied."""
        self._sent = 0

    def pairs(self, load: Workload, *, idle: bool = True) -> list[tuple[float, float]]:
        """Events accepted a second: ours, and those of the bare route. `idle`: the route gets its
        turn when all of ours are published and nobody works.
        """
        pairs = []
        for _ in range(self._scale.slices):
            self._sent += 1
            name, began = f"a{self._sent}", perf_counter()
            ours, took = most(self._running.address, events_path(), load, name, self._scale.slice_s)
            if idle:
                until(lambda: not self._inbox.waiting(), 0.01)
                self.applied.append(ours / (perf_counter() - began))
                until(self.at_rest)
            bare, bare_took = most(self._bare, PATH, load, name, self._scale.slice_s)
            pairs.append((ours / took, bare / bare_took))
        return pairs

    def at_rest(self) -> bool:
        """True if all is published and the worker sleeps."""
        return not self._inbox.waiting() and not self._client.exists(Keys(SITE).awake)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let nobody process events, nor be woken for them, until the end of the block."""
        queues, awake = Queues(self._client, SITE), Keys(SITE).awake
        queues.pause(EVENTS, "bench")
        self._client.set(awake, "1", px=600_000)
        try:
            yield
        finally:
            queues.resume(EVENTS)
            self._client.delete(awake)


def accepted(
    report: Report, running: Service, pages: Sequence[Event], corpus: Corpus, scale: Scale
) -> float:
    """All forms of a delivery; returns how many single events a second are accepted and applied."""
    how = f"{CONNECTIONS} connections, all processes at work"
    with bare_route(running) as bare, connect(running.store, 30.0) as client:
        slices = Slices(running, bare, client, scale)
        single = workload(running, pages, corpus, 1)
        pairs = slices.pairs(single)
        report.add(compared(f"accepted, single signed, {how}", "/s", pairs, AGAINST))
        sustained = median(slices.applied)
        report.add(Figure("single signed, until the last one was applied", "/s", sustained))
        for size, what in ((100, "batches of 100"), (1_000, "NDJSON of 1,000")):
            pairs = slices.pairs(workload(running, pages, corpus, size))
            figure = compared(f"accepted, {what}, {how}", "/s", pairs, f"{AGAINST} of the body")
            if size == 1_000:
                figure = replace(figure, hold=">= 20,000", holds=figure.value >= 20_000)
            report.add(figure)
        with slices.paused():
            pairs = slices.pairs(single, idle=False)
        name = f"accepted, single signed, {CONNECTIONS} connections, processing paused"
        report.add(compared(name, "/s", pairs, AGAINST, at_least=0.6))
    return sustained
