"""Rules of a host's robots.txt for our own requests (RFC 9309), fetched at most once an hour by all
workers together.
"""

from __future__ import annotations

from collections.abc import Callable

import redis
from protego import Protego

from shared.errors import OutboundError
from shared.sitemap.robots import MAX_BYTES
from shared.store.looks.look_turn import RobotsStore
from worker.http.client import HttpClient
from worker.http.exchange import Bounds, OutboundRequest, configured
from worker.looks.page_fetch import AGENT, USER_AGENT

LONGEST_DELAY_S = 60.0
"""Longest Crawl-delay that is obeyed; more would be a look in minutes."""
_BOUNDS = Bounds(20.0, MAX_BYTES, redirects=5)


class RobotsRules:
    """Rules of the host of `origin` (scheme, host and port)."""

    def __init__(self, client: redis.Redis, origin: str) -> None:
        self._store = RobotsStore(client, origin.partition("://")[2])
        self._url, self._known, self._rules = f"{origin}/robots.txt", b"", Protego.parse("")

    def prepare(self, go_on: Callable[[], None]) -> None:
        """Fetch the rules if they are not known by now.

        Raises OutboundError if they cannot be: then nothing may be fetched (RFC 9309, 2.3.1.4).
        """
        content = self._store.get()
        if content is None:
            content = self._fetched(go_on)
            self._store.set(content)
        if content != self._known:
            self._known = content
            self._rules = Protego.parse(content.decode("utf-8-sig", errors="replace"))

    def allows(self, loc: str) -> bool:
        """Return True if the page `loc` may be fetched."""
        return bool(self._rules.can_fetch(loc, AGENT))

    @property
    def delay_s(self) -> float:
        """Seconds between two requests, by Crawl-delay; 0: none."""
        return min(float(self._rules.crawl_delay(AGENT) or 0.0), LONGEST_DELAY_S)

    def _fetched(self, go_on: Callable[[], None]) -> bytes:
        request = OutboundRequest("GET", self._url, self._url)
        client = HttpClient(configured(self._url), _BOUNDS, USER_AGENT, go_on=go_on)
        with client, client.open(request) as answer:
            status = answer.status
            if status == 200:
                return answer.body(MAX_BYTES - 1, cut=True)[:MAX_BYTES]
        if 400 <= status < 500 and status != 429:
            return b""  # there is none: everything is allowed
        raise OutboundError(f"{self._url} answers {status}")
