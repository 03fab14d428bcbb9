"""Rules of a host's robots.txt for our own requests (RFC 9309), fetched at most once an hour by all
workers together.
"""

from __future__ import annotations

from collections.abc import Callable

import redis
from protego import Protego

from shared.store.looks.look_turn import RobotsStore
from worker.http.robots_txt import robots_txt
from worker.looks.page_fetch import AGENT, USER_AGENT

LONGEST_DELAY_S = 60.0
"""Longest Crawl-delay that is obeyed; more would be a look in minutes."""


class RobotsRules:
    """Rules of the host of `origin` (scheme, host and port)."""

    def __init__(self, client: redis.Redis, origin: str) -> None:
        self._store = RobotsStore(client, origin.partition("://")[2])
        self._origin, self._known, self._rules = origin, b"", Protego.parse("")

    def prepare(self, go_on: Callable[[], None]) -> None:
        """Fetch the rules if they are not known by now.

        Raises OutboundError if they cannot be: then nothing may be fetched (RFC 9309, 2.3.1.4).
        """
        content = self._store.get()
        if content is None:
            content = robots_txt(self._origin, USER_AGENT, go_on)
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
