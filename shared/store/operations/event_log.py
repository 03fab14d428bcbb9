"""Event log of a site: recent decisions, publishes and rejections, bounded by size.

Workers log their decision about each event, with the event; publishers the files they wrote; the
webhook deliveries it ignored and, in a stream of its own, those it rejected.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import redis
from isal import isal_zlib
from isal.igzip_lib import IsalError

from shared.domain.page_record import Arrival
from shared.store.keys import keys_of
from shared.store.streams import backwards, forwards

DECIDED, PUBLISHED, IGNORED, REFUSED = "decided", "published", "ignored", "refused"
Decision = tuple[str, str, str, bool]


class LoggedEvent(NamedTuple):
    """Log entry of one event, or of a delivery that yielded none.

    `at` is its place in the stream: ms since 1970, a hyphen, a number. `kind` is DECIDED, IGNORED
    or REFUSED. `event` is the event's id, empty without one; `subject` the page or id it is about;
    `changed` whether published bytes change; `payload` the event as the inbox stores it; `said`
    further details.
    """

    at: str
    kind: str
    event: str
    subject: str
    reason: str
    changed: bool
    payload: bytes
    said: dict[str, Any]

    @property
    def at_ms(self) -> int:
        """Time of the entry (ms since 1970)."""
        return Arrival.of(self.at).ms


def unpack(note: bytes) -> tuple[list[Decision], list[bytes]]:
    """Return the decisions and events that `changes.log_entry` stored; none if they are damaged."""
    try:
        text, *payloads = isal_zlib.decompress(note).split(b"\n")
        return [tuple(decision) for decision in json.loads(text)], payloads
    except (IsalError, ValueError, TypeError):  # type: ignore[misc]  # see shared.sitemap.blocks
        return [], []


class EventLog:
    """Reader of the event log of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)

    def latest(self, before: str = "") -> Iterator[LoggedEvent]:
        """Yield entries of events and rejections by time, newest first, from the place `before` on
        (exclusive).
        """
        streams = (self._keys.recent, self._keys.refused)
        rows = (backwards(self._client, stream, before=before) for stream in streams)
        for at, fields in heapq.merge(*rows, key=lambda row: Arrival.of(row[0]), reverse=True):
            yield from reversed(list(logged(at, fields)))

    def of_event(self, ident: str) -> list[LoggedEvent]:
        """Return the decisions about the event with this id."""
        # An event is decided after its acceptance, by the same clock, and once: its entry is in one
        # place, mostly milliseconds later.
        accepted = ident.partition("-")[0]
        for at, fields in forwards(self._client, self._keys.recent, accepted):
            if found := [past for past in logged(at, fields) if past.event == ident]:
                return found
        return []

    def decisions(self, most: int) -> Iterator[LoggedEvent]:
        """Yield the last `most` decisions, newest first."""
        for past in self.latest():
            if past.kind == DECIDED:
                if most <= 0:
                    return
                most -= 1
                yield past

    def publishes(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield publishes, oldest first: the time (ms since 1970), files written and removed."""
        for at, fields in forwards(self._client, self._keys.recent):
            if said := fields.get(PUBLISHED.encode()):
                yield Arrival.of(at).ms, json.loads(said)


def logged(at: str, fields: dict[bytes, bytes]) -> Iterator[LoggedEvent]:
    """Yield the events of one entry of a stream, oldest first."""
    for kind, note in fields.items():
        if kind == DECIDED.encode():
            decisions, payloads = unpack(note)
            events = payloads if len(payloads) == len(decisions) else [b""] * len(decisions)
            for (event, subject, reason, changed), payload in zip(decisions, events, strict=True):
                yield LoggedEvent(at, DECIDED, event, subject, reason, changed, payload, {})
        elif kind.decode() in {IGNORED, REFUSED}:
            said = json.loads(note)
            reasons = said.get("reasons") or [said.get("reason", "")]
            subject, why = said.get("subject", ""), "; ".join(map(str, reasons))
            yield LoggedEvent(at, kind.decode(), "", subject, why, False, b"", said)
