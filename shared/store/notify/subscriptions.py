"""WebSub subscriptions of a site to feeds at hubs: requests made, and answers of hubs.

Worker, webhook and command line change them concurrently: each change is computed from the stored
subscription, and again if that changed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import redis

from shared.config.notify.hubs import DENIED, SUBSCRIBE, UNSUBSCRIBE
from shared.store.client import answering
from shared.store.keys import keys_of

RETRY_MS = 60_000
"""Delay before a failed request is repeated the first time (ms); doubled each time after."""
LONGEST_RETRY_MS = 6 * 3600_000
LONGEST_LEASE_S = 366 * 24 * 3600
SHORTEST_LEASE_S = 120
"""Bounds of a lease (s); others are clamped: a hub must not force constant renewals."""

State = Literal["new", "asked", "active", "denied", "failed", "ended"]


class Subscription(NamedTuple):
    """Subscription to one feed; times are ms since 1970, 0 for never.

    `mode` is wanted, `state` its progress: `asked` until the hub has verified it. `hub` and `feed`
    are what was requested: `feed` is the feed's own URL for itself. `until` is the end of the
    lease, `due` the time of the next request, `tries` the number of failed requests.
    """

    topic: str
    mode: str = SUBSCRIBE
    state: State = "new"
    hub: str = ""
    feed: str = ""
    asked: int = 0
    until: int = 0
    due: int = 0
    tries: int = 0
    why: str = ""

    def wanted(self, mode: str, now: int) -> Subscription:
        """Return it with `mode` wanted from `now` (ms since 1970) on."""
        return self._replace(mode=mode, state="new", due=now, tries=0, why="")

    def begun(self, now: int) -> Subscription:
        """Return it as requested at `now` (ms since 1970); due again if it is not verified."""
        wait = min(RETRY_MS * 2 ** min(self.tries, 20), LONGEST_RETRY_MS)
        return self._replace(state="asked", asked=now, due=now + wait, tries=self.tries + 1, why="")

    def failed(self, why: str, due: int) -> Subscription:
        """Return it as rejected by the hub, due again at `due` (ms since 1970)."""
        return self._replace(state="failed", why=why, due=due)

    def heard(
        self, mode: str, feed: str, lease_s: int, now: int, reason: str = ""
    ) -> Subscription | None:
        """Return it after the hub verified `mode` of `feed` at `now` (ms); None if not requested.

        Renewed when half of the lease is over. https://www.w3.org/TR/websub/, 5.2 and 5.3.
        """
        if not self.feed or feed != self.feed:
            return None
        if mode == DENIED and self.mode == SUBSCRIBE:
            return self._replace(state="denied", until=0, due=0, why=reason)
        if self.state != "asked" or mode != self.mode:
            return None
        if mode == UNSUBSCRIBE:
            return self._replace(state="ended", until=0, due=0, tries=0)
        lease = min(max(lease_s, SHORTEST_LEASE_S), LONGEST_LEASE_S) * 1000
        return self._replace(
            state="active", until=now + lease, due=now + lease // 2, tries=0, why=""
        )


Decide = Callable[[Subscription], Subscription | None]


class Subscriptions:
    """Subscriptions of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._key = client, keys_of(site).websub

    def all(self) -> list[Subscription]:
        """Return all subscriptions, sorted by feed."""
        with answering():
            found: Any = self._client.hgetall(self._key)
        return sorted(_read(topic, stored) for topic, stored in found.items())

    def add(self, topics: Iterable[str], now: int) -> None:
        """Subscribe to those of `topics` that are new, due at `now` (ms since 1970)."""
        with answering():
            pipe = self._client.pipeline()
            for topic in topics:
                pipe.hsetnx(self._key, topic, json.dumps(Subscription(topic, due=now)))
            pipe.execute()

    def forget(self, topic: str) -> None:
        """Delete the subscription to a feed."""
        with answering():
            self._client.hdel(self._key, topic)

    def change(self, topic: str, decide: Decide) -> Subscription | None:
        """Replace the subscription to `topic` by the result of `decide`; None, and nothing is
        changed, if there is none or `decide` returns None.
        """
        with answering(), self._client.pipeline() as pipe:
            while True:
                try:
                    pipe.watch(self._key)  # type: ignore[no-untyped-call]
                    stored: Any = pipe.hget(self._key, topic)
                    made = decide(_read(topic.encode(), stored)) if stored else None
                    if made is None:
                        return None
                    pipe.multi()
                    pipe.hset(self._key, topic, json.dumps(made))
                    pipe.execute()
                except redis.WatchError:
                    continue
                return made


def _read(topic: bytes, stored: bytes) -> Subscription:
    """Return a stored subscription; a damaged record keeps its topic and is requested again."""
    name = topic.decode(errors="backslashreplace")
    try:
        read = Subscription(*json.loads(stored))
        kinds = [type(value) for value in read]
    except (ValueError, TypeError):
        kinds = []
    if kinds == [str] * 5 + [int] * 4 + [str] and read.topic == name:
        return read
    return Subscription(name, state="failed", due=1, why="its record was damaged")
