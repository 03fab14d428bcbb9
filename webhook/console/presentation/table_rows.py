"""Table rows of past, stored, queued and dead events."""

from __future__ import annotations

from typing import NamedTuple

from shared.admin.dead_letters import subject
from shared.admin.events import StoredEvent
from shared.admin.queues import members
from shared.clock import span
from shared.events.event import NATIVE
from shared.store.operations.dead_letters import DeadLetter
from shared.store.operations.event_log import DECIDED, REFUSED, LoggedEvent
from shared.store.operations.queues import QueuedEvent
from webhook.console.presentation import template_filters


class TableRow(NamedTuple):
    """One event, or one refused request: time (s since 1970), id of its own page (empty if it has
    none), subject, state (grade and word), reason, sender with kind and type.
    """

    at: float
    ident: str
    subject: str
    grade: str
    state: str
    why: str
    source: str


def of_past(past: LoggedEvent) -> TableRow:
    """Return the row of an entry of the event log."""
    at = past.at_ms / 1000
    if past.kind == DECIDED:
        grade, state = ("good", "changed") if past.changed else ("quiet", "unchanged")
        return TableRow(
            at, past.event, past.subject, grade, state, past.reason, source(past.payload)
        )
    said = past.said
    sender = str(said.get("source", ""))
    if past.kind == REFUSED:
        faults = "; ".join(f"{f['field']}: {f['detail']}" for f in said.get("faults", ()))
        code = f"{said.get('status', '')} {said.get('code', '')}".strip()
        ident = str(said.get("request", ""))
        return TableRow(at, ident, code, "bad", REFUSED, faults or past.reason, sender)
    return TableRow(at, "", past.subject, "quiet", past.kind, past.reason, sender)


def of_letter(letter: DeadLetter) -> TableRow:
    """Return the row of a dead letter."""
    at, about = letter.since_ms / 1000, subject(letter.payload)
    return TableRow(at, letter.event, about, "bad", "failed", letter.error, source(letter.payload))


def of_stored(stored: StoredEvent) -> TableRow:
    """Return the row of a stored event."""
    at, about = template_filters.arrived(stored.id), subject(stored.payload)
    return TableRow(at, stored.id, about, "quiet", "kept", "", source(stored.payload))


def of_queued(queued: QueuedEvent) -> TableRow:
    """Return the row of an event that waits or is in flight."""
    received = queued.received
    state, why = "waiting", "no worker has read it yet"
    if queued.consumer:
        state = "in flight"
        why = f"with {queued.consumer} for {span(queued.idle_ms / 1000)}"
        if queued.tries > 1:
            why += f", failed {template_filters.plural(queued.tries - 1, 'time')} before"
    at, about = template_filters.arrived(received.id), subject(received.payload)
    return TableRow(at, received.id, about, "busy", state, why, source(received.payload))


def source(payload: bytes) -> str:
    """Return the sender, the kind and the type of an event."""
    found = members(payload)
    if not found:
        return ""
    sender = found.get("source", NATIVE)
    return " ".join(str(each) for each in (sender, found.get("kind"), found.get("type")) if each)
