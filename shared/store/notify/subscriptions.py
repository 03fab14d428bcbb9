"""The subscriptions of one site to feeds at hubs (WebSub): what was asked for, what hubs said.

Worker, webhook and command line change them at once: each change is made of what is stored, and
made again if that changed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import redis

from shared.config.notify.hubs import DENIED, SUBSCRIBE, UNSUBSCRIBE
from shared.store.client import answering
from shared.store.keys import Keys

RETRY_MS = 60_000
"""After how long a request that came to nothing is repeated the first time; then the double."""
LONGEST_RETRY_MS = 6 * 3600_000
LONGEST_LEASE_S = 366 * 24 * 3600
SHORTEST_LEASE_S = 120
"""Leases outside of these are taken for these: a hub must not have us ask it all the time."""

State = Literal["new", "asked", "active", "denied", "failed", "ended"]


class Subscription(NamedTuple):
    """One feed; times are ms since 1970, 0 for never.

    `mode` is what is wanted, `state` how far that is: `asked` until the hub verified it. `hub` and
    `feed` are what the hub was asked for: `feed` is the feed's own name for itself. `until` is when
    the lease ends, `due` when the hub is to be asked (again), `tries` how often in vain.
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
        """From now on `mode` is wanted."""
        return self._replace(mode=mode, state="new", due=now, tries=0, why="")

    def begun(self, now: int) -> Subscription:
        """The hub is being asked; asked again if nothing comes of it."""
        wait = min(RETRY_MS * 2 ** min(self.tries, 20), LONGEST_RETRY_MS)
        return self._replace(state="asked", asked=now, due=now + wait, tries=self.tries + 1, why="")

    def failed(self, why: str, due: int) -> Subscription:
        """It did not take the request."""
        return self._replace(state="failed", why=why, due=due)

    def heard(
        self, mode: str, feed: str, lease_s: int, now: int, reason: str = ""
    ) -> Subscription | None:
        """What becomes of it if the hub asks whether `mode` of `feed` was asked for; None if not.

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
    """The subscriptions of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._key = client, Keys(site).websub

    def all(self) -> list[Subscription]:
        """Every one, by feed."""
        with answering():
            found: Any = self._client.hgetall(self._key)
        return sorted(_read(topic, stored) for topic, stored in found.items())

    def add(self, topics: Iterable[str], now: int) -> None:
        """Subscribe to those of `topics` that are not known yet."""
        with answering():
            pipe = self._client.pipeline()
            for topic in topics:
                pipe.hsetnx(self._key, topic, json.dumps(Subscription(topic, due=now)))
            pipe.execute()

    def forget(self, topic: str) -> None:
        """Keep nothing of a feed."""
        with answering():
            self._client.hdel(self._key, topic)

    def change(self, topic: str, decide: Decide) -> Subscription | None:
        """Replace the one to `topic` by what `decide` makes of it; None, and nothing is changed, if
        there is none or that gives None.
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
    """What is stored of a feed; of a damaged record its name is left, and it is asked for anew."""
    name = topic.decode(errors="backslashreplace")
    try:
        read = Subscription(*json.loads(stored))
        kinds = [type(value) for value in read]
    except (ValueError, TypeError):
        kinds = []
    if kinds == [str] * 5 + [int] * 4 + [str] and read.topic == name:
        return read
    return Subscription(name, state="failed", due=1, why="what was known of it was damaged")
