"""Queues of a site: depth, pause and purge.

A pause is stored in Redis beside the queue and survives restarts. None of these operations loses
accepted events; purged events are kept for a week.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import redis
from redis.exceptions import ResponseError

from shared.clock import now_ms
from shared.domain.page_record import Arrival
from shared.errors import Fault, InvalidError
from shared.store.client import Scripts, answering
from shared.store.inbox.inbox import InboxEntry
from shared.store.keys import GROUP, keys_of
from shared.store.round_trips import Reading, pairs, read

EVENTS, PUBLISH, NOTIFY, INTAKE = "events", "publish", "notify", "intake"
PAUSABLE = {
    EVENTS: "events are accepted and wait: nothing is decided",
    PUBLISH: "events are decided, files are not written",
    NOTIFY: "files are published, search engines are not notified",
    INTAKE: "senders get 503 and retry later; waiting events are processed",
}
"""Queues that can be paused, and the effect. `drain` pauses INTAKE."""

FORMER = {"door": INTAKE}
"""Names of earlier versions, in stored states and on command lines."""

PURGED_S = 7 * 24 * 3600
_STEP = 1000


class Pause(NamedTuple):
    """Pause of a queue: by whom, and since when (ms since 1970)."""

    by: str
    since_ms: int


class QueueDepth(NamedTuple):
    """Waiting work: unsettled `events`, those of them delivered to a worker, and when the oldest
    was accepted; dirty `files`, and since when events wait for them (ms since 1970, by the clock of
    Redis, which is `now_ms`); None where nothing waits.
    """

    events: int
    in_flight: int
    oldest_ms: int | None
    files: int
    files_since_ms: int | None
    now_ms: int

    def age_s(self, since_ms: int | None) -> float | None:
        """Return the time since `since_ms` (s, to a tenth); None for None."""
        return None if since_ms is None else round(max(0, self.now_ms - since_ms) / 1000, 1)


class QueuedEvent(NamedTuple):
    """One unsettled event: the worker it was delivered to (empty: none), how long ago (ms) and how
    often.
    """

    received: InboxEntry
    consumer: str = ""
    idle_ms: int = 0
    tries: int = 0


class Queues:
    """Queues of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)
        self._scripts = Scripts(client)

    def paused(self) -> dict[str, Pause]:
        """Return the paused queues, by whom and since when."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.paused)
        return pauses_of(stored)

    def pause(self, queue: str, by: str) -> bool:
        """Pause `queue`; False if it was paused. Raises InvalidError if there is no such queue."""
        _known(queue)
        said = f"{now_ms()} {by}"
        with answering():
            return bool(self._client.hsetnx(self._keys.paused, queue, said))

    def resume(self, queue: str) -> bool:
        """Resume `queue`; False if not paused. Raises InvalidError if there is no such queue."""
        _known(queue)
        with answering():
            names = [queue, *(old for old, name in FORMER.items() if name == queue)]
            return bool(self._client.hdel(self._keys.paused, *names))

    def waiting(self) -> QueueDepth:
        """Return the depth of the queues; one round trip."""
        return read(self._client, self._waiting())

    def _waiting(self) -> Reading[QueueDepth]:
        keys = self._keys
        inbox, pending, files, dirty, now = yield (
            ("XINFO", "STREAM", keys.inbox), ("XPENDING", keys.inbox, GROUP),
            ("ZCARD", keys.dirty), ("ZRANGE", keys.dirty, 0, 0, "WITHSCORES"), ("TIME",),
        )  # fmt: skip
        said, (seconds, micros) = pairs(inbox or ()), map(int, now)
        events, first = said.get(b"length", 0), said.get(b"first-entry")
        return QueueDepth(
            events, int(pending[0]) if pending else 0,
            Arrival.of(first[0].decode()).ms if first else None,
            files, next(map(int, pairs(dirty).values()), None), seconds * 1000 + micros // 1000,
        )  # fmt: skip

    def find(self, ident: str) -> QueuedEvent | None:
        """Return the unsettled event with this id; None if there is none."""
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.xrange(self._keys.inbox, ident, ident)
            pipe.xpending_range(self._keys.inbox, GROUP, ident, ident, 1)
            rows, given = pipe.execute(raise_on_error=False)
            if isinstance(rows, Exception):
                raise rows
        if not rows:
            return None
        known = () if isinstance(given, Exception) else given
        return _queued(InboxEntry.of(*rows[0]), next(iter(known), None))

    def newest(self, most: int) -> list[InboxEntry]:
        """Return the `most` unsettled events that were accepted last, newest first."""
        with answering():
            rows: Any = self._client.xrevrange(self._keys.inbox, count=most)
        return [InboxEntry.of(ident, fields) for ident, fields in rows]

    def oldest(self, most: int, after: str = "") -> list[QueuedEvent]:
        """Return the `most` longest waiting events, oldest first, after the id `after`."""
        with answering():
            rows: Any = self._client.xrange(
                self._keys.inbox, f"({after}" if after else "-", count=most
            )
            if not rows:
                return []
            try:
                given: Any = self._client.xpending_range(
                    self._keys.inbox, GROUP, rows[0][0], rows[-1][0], most
                )
            except ResponseError:
                given = []  # no worker has ever read this inbox
        known = {row["message_id"]: row for row in given}
        return [_queued(InboxEntry.of(*row), known.get(row[0])) for row in rows]

    def purge(self) -> tuple[str, int]:
        """Remove all waiting events; return the name under which they are kept, and their number.

        Events that a worker is deciding may still take effect. `kept` reads purged events for
        PURGED_S.
        """
        with answering():
            last: Any = self._client.xrevrange(self._keys.inbox, count=1)
            self._client.zremrangebyscore(self._keys.purges, "-inf", _forgotten_ms())
        if not last:
            return "", 0
        name = str(now_ms())
        names = [self._keys.inbox, self._keys.purged(name), self._keys.purges]
        total = 0
        while gone := int(
            self._scripts("operations/purge", names, GROUP, last[0][0], _STEP, PURGED_S, name)
        ):
            total += gone
        return (name, total) if total else ("", 0)

    def purges(self) -> dict[str, int]:
        """Return the purges that are still kept: name (ms since 1970) -> number of events."""
        with answering():
            names: Any = self._client.zrangebyscore(
                self._keys.purges, f"({_forgotten_ms()}", "+inf"
            )
            counts = [self._client.llen(self._keys.purged(name.decode())) for name in names]
        found = zip(names, counts, strict=True)
        return {name.decode(): int(count) for name, count in found if count}

    def kept(self, name: str) -> Iterator[bytes]:
        """Yield the events of a purge, each a line of JSON as the inbox stores it."""
        at = 0
        while True:
            with answering():
                lines: Any = self._client.lrange(self._keys.purged(name), at, at + _STEP - 1)
            if not lines:
                return
            yield from lines
            at += len(lines)


def pauses_of(stored: Mapping[bytes, bytes]) -> dict[str, Pause]:
    """Return what `Queues.paused` does, from the stored hash."""
    found = {}
    for queue, said in stored.items():
        since, _, by = said.decode(errors="replace").partition(" ")
        name = queue.decode()
        found[FORMER.get(name, name)] = Pause(by, int(since) if since.isdigit() else 0)
    return found


def _queued(received: InboxEntry, given: Mapping[str, Any] | None) -> QueuedEvent:
    if given is None:
        return QueuedEvent(received)
    idle_ms, tries = given["time_since_delivered"], given["times_delivered"]
    return QueuedEvent(received, given["consumer"].decode(), idle_ms, tries)


def _forgotten_ms() -> int:
    """Return the time until which purges have expired (ms since 1970)."""
    return now_ms() - PURGED_S * 1000


def _known(queue: str) -> None:
    if queue not in PAUSABLE:
        raise InvalidError(Fault("queue", "queue", f"there are: {', '.join(PAUSABLE)}"))
