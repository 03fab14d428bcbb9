"""What happened to events, and what waits, as rows of a table."""

from __future__ import annotations

from typing import NamedTuple

from shared.admin.dead import subject
from shared.admin.events import Stored
from shared.admin.queues import members
from shared.events import NATIVE
from shared.store.dead import Letter
from shared.store.history import DECIDED, REFUSED, Past
from shared.store.queues import Queued
from webhook.console import words


class Row(NamedTuple):
    """One event, or one request that became none: when (s since 1970), what its own page is asked
    for (empty: it has none), what it is about, how it stands (grade and word), why, who sent what.
    """

    at: float
    ident: str
    subject: str
    grade: str
    state: str
    why: str
    source: str


def of_past(past: Past) -> Row:
    """Something that happened."""
    at = past.at_ms / 1000
    if past.kind == DECIDED:
        grade, state = ("good", "changed") if past.changed else ("quiet", "unchanged")
        return Row(at, past.event, past.subject, grade, state, past.reason, source(past.payload))
    said = past.said
    sender = str(said.get("source", ""))
    if past.kind == REFUSED:
        faults = "; ".join(f"{f['field']}: {f['detail']}" for f in said.get("faults", ()))
        code = f"{said.get('status', '')} {said.get('code', '')}".strip()
        ident = str(said.get("request", ""))
        return Row(at, ident, code, "bad", REFUSED, faults or past.reason, sender)
    return Row(at, "", past.subject, "quiet", past.kind, past.reason, sender)


def of_letter(letter: Letter) -> Row:
    """An event that failed."""
    at, about = letter.since_ms / 1000, subject(letter.payload)
    return Row(at, letter.event, about, "bad", "failed", letter.error, source(letter.payload))


def of_stored(stored: Stored) -> Row:
    """An event that is kept."""
    at, about = words.arrived(stored.id), subject(stored.payload)
    return Row(at, stored.id, about, "quiet", "kept", "", source(stored.payload))


def of_queued(queued: Queued) -> Row:
    """An event that is not settled."""
    received = queued.received
    state, why = "waiting", "no worker has taken it yet"
    if queued.consumer:
        state = "in flight"
        why = f"with {queued.consumer} for {words.span(queued.idle_ms / 1000)}"
        if queued.tries > 1:
            why += f", failed {words.plural(queued.tries - 1, 'time')} before"
    at, about = words.arrived(received.id), subject(received.payload)
    return Row(at, received.id, about, "busy", state, why, source(received.payload))


def source(payload: bytes) -> str:
    """Who sent what kind of event."""
    found = members(payload)
    if not found:
        return ""
    sender = found.get("source", NATIVE)
    return " ".join(str(each) for each in (sender, found.get("kind"), found.get("type")) if each)
