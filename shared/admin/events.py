"""Event log of a site for administrators: search it, and replay events."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, Self

import redis

from shared.admin.outcomes import ActionOutcome, command, counted, is_id
from shared.domain.page_record import Arrival, stamp
from shared.errors import DateError, Fault, InvalidError, StoreError
from shared.events.event import Event, SchemaError
from shared.sitemap import w3c_dates
from shared.store.inbox.inbox import Inbox
from shared.store.operations.dead_letters import DeadLetters
from shared.store.operations.event_log import DECIDED, IGNORED, REFUSED, EventLog, LoggedEvent
from shared.store.operations.queues import INTAKE

CHANGED, UNCHANGED = "changed", "unchanged"
KINDS = (DECIDED, CHANGED, UNCHANGED, IGNORED, REFUSED)
"""CHANGED and UNCHANGED divide DECIDED by whether published bytes change."""
_STEP = 500
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_PLACE = re.compile(r"([0-9]{1,15})-([0-9]{1,19})(?:\.([0-9]{1,6}))?", re.ASCII)


class EventFilter(NamedTuple):
    """Selection of log entries: about the page or id `url` (with `*` at the end, the start or both
    it matches a prefix, a suffix or a part), with `reason` in their reason, of this `kind`, not
    before `since_ms` (ms since 1970).
    """

    url: str = ""
    reason: str = ""
    kind: str = ""
    since_ms: int = 0

    @classmethod
    def of(cls, url: str = "", reason: str = "", kind: str = "", since: str = "") -> Self:
        """Return the filter for user input: `since` is a W3C datetime, or an age such as 30m, 2h,
        1d. Raises InvalidError for an unknown kind or time.
        """
        if kind and kind not in KINDS:
            raise InvalidError(Fault("kind", "event", f"there are: {', '.join(KINDS)}"))
        return cls(url, reason, kind, _since_ms(since))

    def takes(self, past: LoggedEvent) -> bool:
        """Return True if `past` is selected."""
        kinds = {"", past.kind}
        if past.kind == DECIDED:
            kinds.add(CHANGED if past.changed else UNCHANGED)
        return self.kind in kinds and self.fits(past.subject, past.reason, past.at_ms)

    def fits(self, subject: str, reason: str, at_ms: int) -> bool:
        """Return True if an entry is selected by all but its kind; `at_ms` in ms since 1970."""
        begun, ended = self.url[:1] == "*", self.url[-1:] == "*"
        part = self.url.strip("*")
        if begun and ended:
            about = part in subject
        elif begun or ended:
            about = subject.endswith(part) if begun else subject.startswith(part)
        else:
            about = self.url in {"", subject}
        return about and self.reason in reason and at_ms >= self.since_ms

    def words(self) -> Iterator[str]:
        """Yield the filter as arguments of the command line, without the time."""
        for name in ("url", "reason", "kind"):
            if value := getattr(self, name):
                yield f"--{name}={value}"


class ReplayPreview(NamedTuple):
    """Log entries, newest first; `older` is the place of the next ones, empty at the end."""

    found: Sequence[LoggedEvent]
    older: str


class StoredEvent(NamedTuple):
    """Event as accepted; `id` is empty if unknown."""

    id: str
    payload: bytes


class EventActions:
    """Actions on the events of one site."""

    def __init__(self, client: redis.Redis, site: str, inbox_limit: int = 0) -> None:
        """Open the event log and inbox; at most `inbox_limit` events may wait, 0: any number."""
        self._site, self._limit = site, inbox_limit
        self._inbox, self._history, self._dead = (
            Inbox(client, site), EventLog(client, site), DeadLetters(client, site),
        )  # fmt: skip

    def latest(self, wanted: EventFilter, before: str = "") -> Iterator[LoggedEvent]:
        """Yield the entries that `wanted` selects, newest first, before the place `before`."""
        for past in self._history.latest(before):
            if past.at_ms < wanted.since_ms:
                return
            if wanted.takes(past):
                yield past

    def look(self, wanted: EventFilter, place: str, rows: int, most: int) -> ReplayPreview:
        """Return up to `rows` selected entries among the next `most`, from `place` on (`older` of
        an earlier preview; empty: from the newest on).
        """
        start, passed = _start(place)
        found: list[LoggedEvent] = []
        last, nth = "", 0  # number of entries seen at this place in the stream
        for seen, past in enumerate(self._history.latest(start)):
            nth = nth + 1 if past.at == last else 1
            last = past.at
            if seen < passed:
                continue
            if past.at_ms < wanted.since_ms:
                return ReplayPreview(found, "")
            if seen - passed >= most or len(found) == rows:
                return ReplayPreview(found, f"{past.at}.{nth - 1}")
            if wanted.takes(past):
                found.append(past)
        return ReplayPreview(found, "")

    def stored(self, idents: Iterable[str]) -> list[StoredEvent]:
        """Return the events with these ids. Raises InvalidError with those that are not kept."""
        found, missing = list[StoredEvent](), list[str]()
        for ident in dict.fromkeys(idents):
            pasts = self._history.of_event(ident) if is_id(ident) else []
            kept = (past.payload for past in pasts if past.payload)
            letter = self._dead.of_event(ident) if is_id(ident) else None
            if payload := next(kept, letter.payload if letter else b""):
                found.append(StoredEvent(ident, payload))
            else:
                missing.append(ident)
        if missing:
            detail = "not decided yet, or no longer kept: send it again from its source"
            raise InvalidError(*(Fault(ident, "event", detail) for ident in missing))
        return found

    def matching(self, wanted: EventFilter, most: int | None = None) -> list[StoredEvent]:
        """Return the decided events that `wanted` selects and that are kept, oldest first; of more
        than `most` the newest.
        """
        kept = (past for past in self.latest(wanted) if past.payload)
        found = {past.event: past.payload for past in islice(kept, most)}
        return [StoredEvent(*each) for each in reversed(found.items())]

    def replay(
        self,
        events: Sequence[StoredEvent],
        words: Sequence[str],
        *,
        newest: bool,
        quiet: bool = False,
    ) -> ActionOutcome:
        """Accept these events again.

        `newest`: without their versions and in the order of their stamps, so that they apply
        whatever the current state is; otherwise as they were sent, and newer versions still win.
        `quiet`: engines are not notified of their changes. `words` select them on the command line.
        Raises InvalidError if one cannot be read or the site is closed; StoreError if the inbox is
        full: events accepted until then stay accepted.
        """
        loaded = _loaded(events)
        if newest:
            loaded = [replace(event, version=None) for event in _in_order(events, loaded)]
        ids: list[str] = []
        for at in range(0, len(loaded), _STEP):
            taken = self._inbox.accept(loaded[at : at + _STEP], most=self._limit, quiet=quiet)
            if taken.status != "accepted":
                raise _refusal(taken.status, self._site, len(ids), len(loaded))
            ids += taken.ids
        said = f"{counted(len(ids), 'event')} accepted again"
        line = command("event", "replay", *words, site=self._site)
        return ActionOutcome("event replay", self._site, " ".join(words), said, line, len(ids), ids)


def stored_lines(lines: Iterable[bytes]) -> list[StoredEvent]:
    """Return the events of saved lines, as a purge saves them; empty lines are skipped."""
    return [StoredEvent("", line.strip()) for line in lines if line.strip()]


def _since_ms(since: str) -> int:
    number, unit = since[:-1], since[-1:]
    if unit in _UNITS_S and number.isascii() and number.isdigit() and len(number) < 9:
        return max(0, int((time.time() - int(number) * _UNITS_S[unit]) * 1000))
    try:
        return w3c_dates.epoch_ms(since) if since else 0
    except DateError as error:
        raise InvalidError(
            Fault("since", "PROTOCOL M1", f"{error}; or an age: 30m, 2h, 1d")
        ) from None


def _start(place: str) -> tuple[str, int]:
    """Return the place before which to begin, and the number of entries to skip there."""
    known = _PLACE.fullmatch(place)
    if known is None:
        return "", 0
    ms, number, passed = known.groups()
    return f"{ms}-{int(number) + 1}", int(passed or 0)


def _loaded(events: Sequence[StoredEvent]) -> list[Event]:
    loaded, faults = [], []
    for position, stored in enumerate(events):
        try:
            loaded.append(Event.load(stored.payload))
        except SchemaError as error:
            faults.append(Fault(stored.id or "line", "event", str(error), position))
    if faults:
        raise InvalidError(*faults[:20])
    return loaded


def _in_order(events: Sequence[StoredEvent], loaded: Sequence[Event]) -> list[Event]:
    """Return events in the order of their stamps; unchanged if an arrival is unknown."""
    if not all(stored.id for stored in events):
        return list(loaded)
    stamps = [
        stamp(event.version, *Arrival.of(stored.id))
        for stored, event in zip(events, loaded, strict=True)
    ]
    order = sorted(range(len(loaded)), key=lambda at: stamps[at])
    return [loaded[at] for at in order]


def _refusal(status: str, site: str, done: int, of: int) -> InvalidError | StoreError:
    if status == "closed":
        line = command("queue", "resume", INTAKE, site=site)
        return InvalidError(Fault(INTAKE, "closed", f"the intake is closed; run first: {line}"))
    return StoreError(f"{done} of {of} accepted, then the inbox was full ({status}): try again")


def told(past: LoggedEvent) -> Mapping[str, object]:
    """Return a log entry as JSON values."""
    found: dict[str, object] = {
        "at_ms": past.at_ms, "at": past.at, "kind": past.kind, "event": past.event,
        "subject": past.subject, "reason": past.reason, "changed": past.changed,
    }  # fmt: skip
    return found | ({"said": past.said} if past.said else {})
