"""Notification queue of a site: locs to notify engines of, and outcomes of notifications.

A loc waits in the zset of its engine until a delivery lease (delivery_lease.py) takes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

import redis

from shared.batches import batches
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.streams import forwards

CHUNK = 1_000
MOST_RECORDS = 1_000
"""Number of outcomes kept for display."""

MOST_DEAD = 1_000
"""Maximum dead notifications of a site, of up to CHUNK locs each; the oldest are removed."""

BUDGET_S = 2 * 24 * 3600


class RequestRecord(NamedTuple):
    """Outcome of one request to an engine, or the reason why none was sent.

    `at` and `next` are ms since 1970, the latter 0 if it is not retried; `pages` is the number of
    pages, `sample` some of them; `status` is the HTTP status, 0 without an answer; `outcome` one of
    worker/notify/engine.py; `ms` the duration of the request.
    """

    at: int
    engine: str
    endpoint: str
    pages: int
    sample: tuple[str, ...]
    status: int
    outcome: str
    ms: int
    detail: str
    next: int = 0


class Breaker(NamedTuple):
    """Circuit breaker of an endpoint: no requests until `until` (ms), or while `paused`.

    `failures` and `refusals` count those in a row; a pause without refusals concerns the key or the
    credentials.
    """

    failures: int
    until: int
    why: str
    paused: bool = False
    refusals: int = 0

    def open(self, now: int) -> bool:
        """Return True if no request is to be sent at `now` (ms since 1970)."""
        return self.paused or now < self.until

    @classmethod
    def unpack(cls, stored: bytes) -> Self | None:
        """Return the breaker stored as JSON; None for anything else, which blocks no request."""
        try:
            read = cls(*json.loads(stored))
            as_it_should = [type(value) for value in read] == [int, int, str, bool, int]
        except (ValueError, TypeError):
            return None
        return read if as_it_should else None


class EngineState(NamedTuple):
    """State of one engine: when its oldest waiting loc is or was due (ms since 1970; None: none
    waits), and the worst breaker of its endpoints.
    """

    engine: str
    due_ms: int | None
    breaker: Breaker | None


class DeadNotification(NamedTuple):
    """Locs of which an engine could not be notified, and the reason; `at` in ms since 1970."""

    ident: str
    at: int
    engine: str
    why: str
    locs: tuple[str, ...]


class NotificationQueue:
    """Notification queue of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)

    def enqueue(self, engines: Sequence[str], locs: Iterable[str], at: int) -> int:
        """Queue `locs` for `engines`, due at `at` (ms since 1970); return how many are new.

        `locs` may be as many as a site has, and is read once.
        """
        added = 0
        for some in batches(locs, CHUNK):
            with answering():
                pipe = self._client.pipeline()
                for engine in engines:
                    pipe.zadd(self._keys.notify(engine), dict.fromkeys(some, at), nx=True)
                added += sum(pipe.execute())
        return added

    def due(self, engines: Sequence[str], now: int) -> list[str]:
        """Return those of `engines` with work due at `now` (ms); none while notifying is paused."""
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.hexists(self._keys.paused, "notify")
            for engine in engines:
                pipe.zcount(self._keys.notify(engine), "-inf", now)
                # Left by a dead worker; only relevant while no worker holds the delivery lease.
                pipe.exists(self._sending(engine))
                pipe.exists(self._keys.notify_lease(engine))
            paused, *found = pipe.execute()
        if paused:
            return []
        return [
            engine
            for n, engine in enumerate(engines)
            if found[3 * n] or (found[3 * n + 1] and not found[3 * n + 2])
        ]

    def spend(self, engine: str, now: int, count: int) -> None:
        """Take `count` from the budget of the day (UTC) of `now` (ms since 1970)."""
        key = self._keys.spent(engine, _day(now))
        with answering():
            pipe = self._client.pipeline()
            pipe.incrby(key, count)
            pipe.expire(key, BUDGET_S)
            pipe.execute()

    def spent(self, engine: str, now: int) -> int:
        """Return the part spent of the budget of the day (UTC) of `now` (ms since 1970)."""
        with answering():
            return int(self._client.get(self._keys.spent(engine, _day(now))) or 0)

    def breakers(self) -> dict[tuple[str, str], Breaker]:
        """Return the breakers by engine and endpoint."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.breakers)
        return _breakers(stored)

    def set_breaker(self, engine: str, endpoint: str, breaker: Breaker | None) -> None:
        """Store the breaker of an endpoint; None removes it."""
        name = f"{engine} {endpoint}"
        with answering():
            if breaker is None:
                self._client.hdel(self._keys.breakers, name)
            else:
                self._client.hset(self._keys.breakers, name, json.dumps(breaker))

    def record(self, record: RequestRecord) -> None:
        """Store the outcome of a request and count it."""
        counted = f"notified:{record.engine}:{record.outcome}"
        with answering():
            pipe = self._client.pipeline()
            pipe.xadd(
                self._keys.notices,
                {"fate": json.dumps(record)},
                maxlen=MOST_RECORDS,
                approximate=True,
            )
            pipe.hincrby(self._keys.stats, counted, 1)
            pipe.execute()

    def records(self, most: int = MOST_RECORDS) -> list[RequestRecord]:
        """Return the outcomes of the latest requests, newest first."""
        with answering():
            found: Any = self._client.xrevrange(self._keys.notices, count=most)
        return [record for _, fields in found if (record := _record_of(fields)) is not None]

    def dead(self) -> Iterator[DeadNotification]:
        """Yield the dead notifications, oldest first."""
        for ident, fields in forwards(self._client, self._keys.notice_dead, step=10):
            with suppress(KeyError, ValueError, TypeError):  # not written by sitemapd
                yield DeadNotification(
                    ident, int(fields[b"at"]), fields[b"engine"].decode(),
                    fields[b"why"].decode(), tuple(map(str, json.loads(fields[b"locs"]))),
                )  # fmt: skip

    def replay(self, engines: Sequence[str], now: int) -> int:
        """Requeue dead notifications of `engines` at `now` (ms), drop breakers; return how many."""
        for engine, endpoint in self.breakers():
            if engine in engines:
                self.set_breaker(engine, endpoint, None)
        count = 0
        for dead in self.dead():
            if dead.engine not in engines:
                continue
            with answering():
                pipe = self._client.pipeline()
                queue = self._keys.notify(dead.engine)
                pipe.zadd(queue, dict.fromkeys(dead.locs, now), nx=True)
                pipe.xdel(self._keys.notice_dead, dead.ident)
                pipe.execute()
            count += len(dead.locs)
        return count

    def figures(self, engine: str, now: int) -> dict[str, int | None]:
        """Return the locs waiting and due at `now` (ms), the next time (ms), today's spending."""
        queue = self._keys.notify(engine)
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.zcard(queue)
            pipe.zcard(self._sending(engine))
            pipe.zcount(queue, "-inf", now)
            pipe.zrange(queue, 0, 0, withscores=True)
            waiting, sending, due, first = pipe.execute()
        return {
            "waiting": waiting + sending,
            "due": due,
            "next": int(first[0][1]) if first else None,
            "spent_today": self.spent(engine, now),
        }

    def _sending(self, engine: str) -> str:
        return self._keys.sending(engine)


def engine_states(
    engines: Sequence[str], dues: Sequence[bytes], breakers: Mapping[bytes, bytes]
) -> list[EngineState]:
    """Return the state of each of `engines`: `dues` are the scores of their oldest locs (empty:
    none), `breakers` the stored hash.
    """
    known, found = _breakers(breakers), []
    for engine, due in zip(engines, dues, strict=True):
        mine = [each for (name, _), each in known.items() if name == engine]
        worst = max(mine, key=lambda each: (each.paused, each.failures), default=None)
        found.append(EngineState(engine, int(float(due)) if due else None, worst))
    return found


def _breakers(stored: Mapping[bytes, bytes]) -> dict[tuple[str, str], Breaker]:
    found = {}
    for name, value in stored.items():
        engine, _, endpoint = name.decode(errors="replace").partition(" ")
        if (breaker := Breaker.unpack(value)) is not None:
            found[engine, endpoint] = breaker
    return found


def _record_of(fields: dict[bytes, bytes]) -> RequestRecord | None:
    """Return the outcome that an entry of the stream holds; None if it is damaged."""
    try:
        read = RequestRecord(*json.loads(fields[b"fate"]))
        return read._replace(sample=tuple(map(str, read.sample)))
    except (KeyError, ValueError, TypeError):
        return None


def _day(now: int) -> str:
    return datetime.fromtimestamp(now / 1000, UTC).strftime("%Y%m%d")
