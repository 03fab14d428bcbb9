"""From the first byte of a signed POST until shard and index are replaced, and the least that
takes.
"""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Sequence
from pathlib import Path

import redis

from shared.events.event import Event
from tests.bench.bed import Bare, server
from tests.bench.report import Report, compared
from tests.bench.scale import Scale
from tests.bench.service import SITE, Delivery, Service, post, until

IDLE_S = 1.1  # longer than the publish interval
AGAINST = "bare durable write of both files + one durable XADD"


class BareDelivery:
    """The least that takes a delivery and publishes it: one durable XADD of its body to the server
    of `client`, then the bare write of the files.
    """

    def __init__(self, root: Path, client: redis.Redis) -> None:
        self._bare, self._client = Bare(root), client

    def take(self, body: bytes, files: Sequence[tuple[str, bytes]]) -> float:
        """How long (s) that takes."""
        began = time.perf_counter()
        self._client.xadd("bare", {"e": body})
        return time.perf_counter() - began + self._bare.write(files)


class Probe:
    """Sends one event after the other to `site`, each to the idle site."""

    def __init__(self, running: Service, site: str, client: redis.Redis, name: str = "v") -> None:
        self._name = f"{name}-{site}"
        self._running, self._site = running, site
        self._root = running.roots[site]
        self._index = self._root / "sitemap.xml"
        self._connection: http.client.HTTPConnection = running.connect()
        self._bare = BareDelivery(self._root.parent, client)
        self._sent, self._last = 0, time.time()

    def pair(self, page: Event) -> tuple[float, float]:
        """Milliseconds from the POST of `page` until it is visible, and of the bare delivery."""
        # What is measured is the leading edge: nothing was published for an interval, and no date
        # lies ahead of the clock, which each publish moves on by a second.
        idle = max(os.stat(self._index).st_mtime, self._last) + IDLE_S
        until(lambda: time.time() > idle, 0.01)
        before = {path.name: path.stat().st_ino for path in self._root.glob("*.xml")}
        self._sent += 1
        delivery = self._running.signed([page], f"{self._name}-{self._sent}")
        took = self._visible(delivery, before[self._index.name])
        self._last = time.time()
        files = [
            (path.name, path.read_bytes())
            for path in self._root.glob("*.xml")
            if before[path.name] != path.stat().st_ino
        ]
        assert len(files) == 2
        assert str(page.lastmod).encode() in files[0][1] + files[1][1]
        return took * 1e3, self._bare.take(delivery[0], files) * 1e3

    def _visible(self, delivery: Delivery, old: int) -> float:
        began = time.perf_counter()
        post(self._connection, delivery, self._site)
        # The index is replaced last.
        until(lambda: os.stat(self._index).st_ino != old, 0.000_2)
        return time.perf_counter() - began


def visible(report: Report, running: Service, pages: Sequence[Event], scale: Scale) -> None:
    """POST to visible in an idle service, the worker asleep."""
    some = pages[:: len(pages) // scale.rounds][: scale.rounds]
    with server() as client:
        probe = Probe(running, SITE, client)
        pairs = [probe.pair(page) for page in some]
    name = f"POST to visible, {len(pages):,} URLs, shards of 10,000, idle"
    report.add(compared(name, "ms", pairs[scale.warm :], AGAINST, at_most=3))
