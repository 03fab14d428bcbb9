"""Inbox of a site: accepted events, durable before the sender gets its answer."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

import msgpack
import redis
from redis.exceptions import ResponseError

from shared.errors import StoreError
from shared.events.event import Event
from shared.store.client import PipelinedScript, Scripts, answering
from shared.store.keys import AWAKE_MS, BURST_S, GROUP, SEEN_S, keys_of
from shared.store.servers.replica_wait import ConfirmedScripts, ReplicaWait
from shared.telemetry import tracing


class AcceptResult(NamedTuple):
    """Result of one delivery.

    `status` is `accepted`, `duplicate` (same delivery id and body as before), `conflict` (same id,
    another body: the first delivery stands), `full` (the inbox), `limited` (the site's rate: the
    delivery fits in `wait` seconds if no other comes) or `closed` (by an administrator); only
    `accepted` writes events. `ids` are the ids of the events, `digest` is that of the body accepted
    first under this id. `slept` is True if no worker was awake for this site.
    """

    status: str
    ids: list[str]
    slept: bool
    digest: str = ""
    wait: int = 0


class InboxEntry(NamedTuple):
    """One entry of the inbox as stored: `quiet` if engines are not notified of its change, `trace`
    the trace context (W3C traceparent) it came with. `payload` is empty if it holds no event.
    """

    id: str
    payload: bytes
    quiet: bool = False
    trace: str = ""

    @classmethod
    def of(cls, ident: bytes, fields: Mapping[bytes, bytes]) -> InboxEntry:
        """Return the entry with this id and these fields."""
        trace = fields.get(b"t", b"").decode(errors="replace")
        return cls(ident.decode(), fields.get(b"e", b""), b"q" in fields, trace)


class Inbox:
    """Inbox of one site."""

    def __init__(self, client: redis.Redis, site: str, wait: ReplicaWait | None = None) -> None:
        """Create the inbox of `site`; what it accepts is confirmed by replicas as `wait` says."""
        self._client = client
        self._keys = keys_of(site)
        self._seen = self._keys.seen("")
        self._scripts = Scripts(client)
        self._confirmed = ConfirmedScripts(client, wait) if wait and wait.replicas else None

    @tracing.traced("accept")
    def accept(
        self,
        events: list[Event],
        *,
        delivery: str | None = None,
        digest: str = "",
        most: int = 0,
        rate: float = 0,
        quiet: bool = False,
        trace: str = "",
    ) -> AcceptResult:
        """Append `events`, all or none, in one round trip.

        `delivery` is the sender's id of this delivery and `digest` that of its body. `most` limits
        the number of waiting events (0: no limit). `rate` limits the events per second (0: no
        limit): a burst may hold BURST_S seconds of that rate, a larger delivery is accepted when
        the bucket is full. `quiet` events are published without notifications. `trace` is the trace
        context of the request, by default that of the current trace. Raises StoreDownError or
        StoreError if the events may not be stored.
        """
        keys = self._keys
        names = [keys.inbox, keys.awake, keys.rate, keys.paused, keys.stats]
        names.append(self._seen + delivery if delivery else keys.awake)
        if not trace and tracing.active:
            trace = tracing.carry()
        given = (
            digest, SEEN_S, AWAKE_MS, most, rate, BURST_S,
            "1" if quiet else "", trace, *map(Event.dump, events),
        )  # fmt: skip
        if self._confirmed is None:
            reply = self._scripts("inbox/accept", names, *given)
        else:
            touch = ("EXPIRE", self._seen + (delivery or ""), SEEN_S)
            reply = self._confirmed.run(PipelinedScript("inbox/accept", names, given), touch)
        status, first, count, slept, accepted, wait = reply
        ids = []
        if first:
            ms, _, sequence = first.decode().partition("-")
            # One script runs at one instant of the stream's clock, so its ids follow each other.
            start = int(sequence)
            ids = list(map(f"{ms}-{{}}".format, range(start, start + count)))
        return AcceptResult(status.decode(), ids, bool(slept), accepted.decode(), wait)

    def read_new(self, consumer: str, count: int) -> tuple[list[InboxEntry], Container[str]]:
        """Return up to `count` new events for `consumer`, none while processing is paused; and
        which of the queues `events` and `publish` are paused. Raises StoreDownError, StoreError.
        """
        return self.found(self.reading(consumer, count))

    def reading(self, consumer: str, count: int) -> PipelinedScript:
        """Return the script of `read_new`, to be pipelined after another script."""
        names = [self._keys.inbox, self._keys.paused]
        return PipelinedScript("inbox/read_new", names, (GROUP, consumer, count))

    def found(self, reading: PipelinedScript) -> tuple[list[InboxEntry], Container[str]]:
        """Return what `reading` found, once it was pipelined or else now; as `read_new`."""
        paused, packed = reading.reply if reading.done else self._scripts.run(reading)
        entries = msgpack.unpackb(packed, raw=True) if packed else []
        if not entries:
            return [], frozenset(map(bytes.decode, paused))
        found = []
        for ident, fields in entries:
            if len(fields) == 2 and fields[0] == b"e":
                found.append(InboxEntry(ident.decode(), fields[1]))
            else:
                pairs = iter(fields)
                found.append(InboxEntry.of(ident, dict(zip(pairs, pairs, strict=True))))
        return found, frozenset(map(bytes.decode, paused))

    def read(self, consumer: str, count: int, after: str = ">") -> list[InboxEntry]:
        """Return up to `count` new events for `consumer`, also while processing is paused.

        With `after`, an event id: unsettled events it was given before, with later ids than that.
        """
        with answering():
            try:
                return self._read(consumer, count, after)
            except ResponseError as error:
                if "NOGROUP" not in str(error):
                    raise
                self._make_group()
                return self._read(consumer, count, after)

    def _read(self, consumer: str, count: int, after: str) -> list[InboxEntry]:
        reply: Any = self._client.xreadgroup(
            GROUP, consumer, {self._keys.inbox: after}, count=count
        )
        entries = reply[0][1] if reply else []
        return [InboxEntry.of(ident, fields) for ident, fields in entries if fields]

    def _make_group(self) -> None:
        try:
            self._client.xgroup_create(self._keys.inbox, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def waiting(self) -> int:
        """Return the number of unsettled events."""
        with answering():
            return int(self._client.xlen(self._keys.inbox))

    def tries(self, consumer: str) -> dict[str, int]:
        """Return the delivery counts of `consumer`'s unsettled events (first 1,000), by id."""
        with answering():
            try:
                rows: Any = self._client.xpending_range(
                    self._keys.inbox, GROUP, "-", "+", 1000, consumername=consumer
                )
            except ResponseError:
                return {}
        return {row["message_id"].decode(): row["times_delivered"] for row in rows}

    def consumers(self) -> list[str]:
        """Return every consumer that ever read this inbox."""
        return [name for name, _ in self._consumers()]

    def holders(self) -> list[str]:
        """Return the consumers that hold unsettled events."""
        return [name for name, unsettled in self._consumers() if unsettled]

    def _consumers(self) -> list[tuple[str, int]]:
        with answering():
            try:
                rows: Any = self._client.xinfo_consumers(self._keys.inbox, GROUP)
            except ResponseError:
                return []
        return [(row["name"].decode(), row["pending"]) for row in rows]

    def leave(self, consumer: str) -> None:
        """Remove `consumer`, which reads no more, unless it holds unsettled events."""
        if consumer in self.consumers() and consumer not in self.holders():
            with answering():
                self._client.xgroup_delconsumer(self._keys.inbox, GROUP, consumer)

    def adopt(self, consumer: str, dead: Iterable[str]) -> int:
        """Claim the unsettled events (first 1,000 each) of the consumers `dead`; return the number.

        The minimal idle time is zero: Redis measures idleness by the wall clock, and a clock set
        back an hour would freeze it (RELIABILITY 0, finding 6).
        """
        taken = 0
        with answering():
            for name in dead:
                rows: Any = self._client.xpending_range(
                    self._keys.inbox, GROUP, "-", "+", 1000, consumername=name
                )
                ids = [row["message_id"] for row in rows]
                if ids:
                    self._client.xclaim(self._keys.inbox, GROUP, consumer, 0, ids, justid=True)
                    taken += len(ids)
        return taken

    def dead_letter(self, ident: str, error: str, tries: int) -> bool:
        """Move one event to the dead letters; False if it was settled meanwhile."""
        keys = self._keys
        return bool(
            self._scripts(
                "operations/dead_letter",
                [keys.inbox, keys.dead, keys.stats],
                GROUP,
                ident,
                error[:500],
                tries,
            )
        )

    def rest(self) -> bool:
        """Mark the site as idle if no event waits and no shard is dirty; False otherwise."""
        keys = self._keys
        return bool(self._scripts("inbox/mark_idle", [keys.inbox, keys.dirty, keys.awake]))

    def stay_awake(self) -> None:
        """Mark the site as awake for another AWAKE_MS, so that the webhook sends no wake-up."""
        with answering():
            self._client.set(self._keys.awake, "1", px=AWAKE_MS)

    def sleep(self) -> None:
        """Mark the site as idle, whether work is left or not."""
        with answering():
            self._client.delete(self._keys.awake)

    def check(self) -> None:
        """Raise StoreDownError or StoreError unless Redis answers."""
        with answering():
            if not self._client.ping():
                raise StoreError("Redis answers, but not PONG")
