"""Events: those that came lately, with what was decided; accept some of them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import redis

from shared.admin.outcomes import Outcome, command, counted, is_id
from shared.errors import Fault, InvalidError, StoreError
from shared.events import Event, SchemaError
from shared.inbox import Inbox
from shared.known import Arrival
from shared.locator import stamp
from shared.store.dead import Dead
from shared.store.history import DECIDED, IGNORED, REFUSED, History, Past

KINDS = (DECIDED, IGNORED, REFUSED)
_STEP = 500


class Wanted(NamedTuple):
    """Which of the things that happened: about the page or id `url` (one that ends in `*`: all that
    begin so), with `reason` in their reason, of this `kind`, not before `since_ms` (ms since 1970).
    """

    url: str = ""
    reason: str = ""
    kind: str = ""
    since_ms: int = 0

    def takes(self, past: Past) -> bool:
        """Whether `past` is one of them."""
        if self.url.endswith("*"):
            about = past.subject.startswith(self.url[:-1])
        else:
            about = self.url in {"", past.subject}
        return about and self.kind in {"", past.kind} and self.reason in past.reason

    def words(self) -> Iterator[str]:
        """The same on the command line, without the time."""
        for name in ("url", "reason", "kind"):
            if value := getattr(self, name):
                yield f"--{name}={value}"


class Stored(NamedTuple):
    """An event as it was accepted; `id` is empty where that is not known."""

    id: str
    payload: bytes


class EventActions:
    """The events of one site."""

    def __init__(self, client: redis.Redis, site: str, inbox_limit: int = 0) -> None:
        """`inbox_limit` is how many events may wait at most, 0: any number."""
        self._site, self._limit = site, inbox_limit
        self._inbox, self._history, self._dead = (
            Inbox(client, site), History(client, site), Dead(client, site),
        )  # fmt: skip

    def latest(self, wanted: Wanted, before: str = "+") -> Iterator[Past]:
        """What happened and is `wanted`, newest first, from the place `before` on."""
        for past in self._history.latest(before):
            if past.at_ms < wanted.since_ms:
                return
            if wanted.takes(past):
                yield past

    def stored(self, idents: Iterable[str]) -> list[Stored]:
        """The events of these ids; InvalidError names those that are no longer kept."""
        found, dead = [], {letter.event: letter.payload for letter in self._dead.letters()}
        missing = []
        for ident in dict.fromkeys(idents):
            pasts = self._history.of_event(ident) if is_id(ident) else []
            kept = (past.payload for past in pasts if past.payload)
            payload = next(kept, dead.get(ident))
            if payload:
                found.append(Stored(ident, payload))
            else:
                missing.append(ident)
        if missing:
            detail = "not decided yet, or no longer kept: let its sender send it again"
            raise InvalidError(*(Fault(ident, "event", detail) for ident in missing))
        return found

    def matching(self, wanted: Wanted) -> list[Stored]:
        """The events that were decided and are `wanted`, as far as they are kept, oldest first."""
        found = {past.event: past.payload for past in self.latest(wanted) if past.payload}
        return [Stored(*each) for each in reversed(found.items())]

    def replay(
        self, events: Sequence[Stored], words: Sequence[str], *, newest: bool, quiet: bool = False
    ) -> Outcome:
        """Accept these events again.

        `newest`: without their versions and in the order of these, so that they count whatever is
        known by now; else as they were sent, and what is newer still wins. `quiet`: search engines
        are not told of what they change. `words` choose them on the command line. InvalidError if
        one cannot be read, or the site is closed; StoreError if the inbox is full: what was
        accepted until then stays so.
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
        return Outcome("event replay", self._site, " ".join(words), said, line, len(ids), ids)


def stored_lines(lines: Iterable[bytes]) -> list[Stored]:
    """The events of saved lines, one each, as a purge saves them; empty lines are passed over."""
    return [Stored("", line.strip()) for line in lines if line.strip()]


def _loaded(events: Sequence[Stored]) -> list[Event]:
    loaded, faults = [], []
    for position, stored in enumerate(events):
        try:
            loaded.append(Event.load(stored.payload))
        except SchemaError as error:
            faults.append(Fault(stored.id or "line", "event", str(error), position))
    if faults:
        raise InvalidError(*faults[:20])
    return loaded


def _in_order(events: Sequence[Stored], loaded: Sequence[Event]) -> list[Event]:
    """By what orders events about one page; those whose arrival is not known stay as they are."""
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
        line = command("queue", "resume", "door", site=site)
        return InvalidError(Fault("door", "closed", f"the site takes no events; run first: {line}"))
    return StoreError(f"{done} of {of} accepted, then the inbox was full ({status}): try again")


def told(past: Past) -> Mapping[str, object]:
    """A thing that happened, as JSON."""
    found: dict[str, object] = {
        "at_ms": past.at_ms, "at": past.at, "kind": past.kind, "event": past.event,
        "subject": past.subject, "reason": past.reason, "changed": past.changed,
    }  # fmt: skip
    return found | ({"said": past.said} if past.said else {})
