"""What happened lately on a site, event by event, for people: kept by size, never for ever.

A worker notes what it decided about each event, and the event itself; a publisher what it wrote;
the webhook what it let pass without an event, and, in a stream of its own, what it refused.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import redis
from isal import isal_zlib
from isal.igzip_lib import IsalError

from shared.domain.batch_state import Arrival
from shared.store.keys import Keys
from shared.store.streams import backwards, forwards

DECIDED, PUBLISHED, IGNORED, REFUSED = "decided", "published", "ignored", "refused"
_LEVEL = 1  # 500 events: 0.4 ms
Decision = tuple[str, str, str, bool]


class LoggedEvent(NamedTuple):
    """One thing that happened to one event, or to a delivery that became none.

    `at` is its place in the stream: ms since 1970, a hyphen, a number. `kind` is DECIDED, IGNORED
    or REFUSED. `event` is the event's id, empty without one; `subject` the page or id it is about;
    `changed` whether published bytes change; `payload` the event as the inbox stores it; `said`
    what else is known.
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
        """When it happened (ms since 1970)."""
        return Arrival.of(self.at).ms


def pack(decisions: Sequence[Decision], payloads: Sequence[bytes]) -> bytes:
    """The note of one batch: what was decided, and the events in the same order, if any."""
    text = json.dumps(decisions, separators=(",", ":")).encode()
    return isal_zlib.compress(b"\n".join((text, *payloads)), _LEVEL)


def unpack(note: bytes) -> tuple[list[Decision], list[bytes]]:
    """Decisions and events of what `pack` gave; nothing for what the store has damaged."""
    try:
        text, *payloads = isal_zlib.decompress(note).split(b"\n")
        return [tuple(decision) for decision in json.loads(text)], payloads
    except (IsalError, ValueError, TypeError):  # type: ignore[misc]  # see shared.sitemap.blocks
        return [], []


class EventLog:
    """Reads the history of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, Keys(site)

    def latest(self, before: str = "") -> Iterator[LoggedEvent]:
        """What happened to events, newest first, from the place `before` on (exclusive); what was
        refused among it, by the time it was noted.
        """
        streams = (self._keys.recent, self._keys.refused)
        rows = (backwards(self._client, stream, before=before) for stream in streams)
        for at, fields in heapq.merge(*rows, key=lambda row: Arrival.of(row[0]), reverse=True):
            yield from reversed(list(_pasts(at, fields)))

    def of_event(self, ident: str) -> list[LoggedEvent]:
        """What was decided about the event of this id."""
        # Decided after it was accepted, by the same clock, and once: what is noted of it is in one
        # place, mostly milliseconds later.
        accepted = ident.partition("-")[0]
        for at, fields in forwards(self._client, self._keys.recent, accepted):
            if found := [past for past in _pasts(at, fields) if past.event == ident]:
                return found
        return []

    def decisions(self, most: int) -> Iterator[Decision]:
        """The last `most` decisions, newest first."""
        for past in self.latest():
            if past.kind == DECIDED:
                if most <= 0:
                    return
                most -= 1
                yield past.event, past.subject, past.reason, past.changed

    def publishes(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Publishes, oldest first: when (ms since 1970), and what was written and removed."""
        for at, fields in forwards(self._client, self._keys.recent):
            if said := fields.get(PUBLISHED.encode()):
                yield Arrival.of(at).ms, json.loads(said)


def _pasts(at: str, fields: dict[bytes, bytes]) -> Iterator[LoggedEvent]:
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
