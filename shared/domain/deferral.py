"""Deferred events: those that take effect later than they arrive. A page with `publish_at` is
listed from then on, one with `expires` until then.

Pure, like shared.domain.decide. A deferred event is decided again at its due time, with the stamp
that it had: an event of its page that is newer by then wins, as ever.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from shared.domain.batch_state import Changes
from shared.domain.page_record import Arrival
from shared.events.event import Event, SchemaError
from shared.sitemap import w3c_dates

AT = "at "
"""Prefix of the name of a page's deferral in `coming` and `expiry`; the loc follows."""

EXPIRED = "expired"
_DAY_MS, _DATE = 86_400_000, len("2026-11-23")
_HEAD = struct.Struct(">QQ")
_SAME_PAGE = ("type", "loc", "id", "section", "source", "kind", "locale", "expires")


class Deferral(NamedTuple):
    """An `event` that is decided again at `due_ms` (since 1970), with its `stamp`."""

    stamp: int
    due_ms: int
    event: Event

    def pack(self) -> bytes:
        """The stored form."""
        return _HEAD.pack(self.stamp, self.due_ms) + self.event.dump()

    @classmethod
    def unpack(cls, stored: bytes) -> Deferral:
        """The deferral that `pack` wrote. Raises SchemaError for anything else, NewerSchemaError
        for an event of a version that this worker does not know.
        """
        if len(stored) < _HEAD.size:
            raise SchemaError("stored deferral cannot be read: it is too short")
        stamp, due_ms = _HEAD.unpack_from(stored)
        return cls(stamp, due_ms, Event.load(stored[_HEAD.size :]))


def absence(event: Event, now_ms: int) -> str:
    """The reason for which the page of `event` is not listed at `now_ms` (since 1970); empty:
    none.
    """
    if appears_ms(event) > now_ms:
        return f"not published before {event.publish_at}"
    leaves = leaves_ms(event)
    return EXPIRED if leaves is not None and leaves <= now_ms else ""


def appears_ms(event: Event) -> int:
    """The publish_at of `event` in milliseconds since 1970; 0: none."""
    return 0 if event.publish_at is None else w3c_dates.epoch_ms(event.publish_at)


def leaves_ms(event: Event) -> int | None:
    """The time (ms since 1970) from which the page of `event` has expired; a date alone is its last
    day, UTC, as of videos (PROTOCOL V6). None: it does not expire.
    """
    if event.expires is None:
        return None
    return w3c_dates.epoch_ms(event.expires) + (_DAY_MS if len(event.expires) == _DATE else 0)


def appearance(event: Event, arrival: Arrival) -> Arrival:
    """The arrival of `event`, for what depends on it: not before its page appears."""
    return arrival._replace(ms=max(arrival.ms, appears_ms(event)))


def defer(changes: Changes, event: Event, stamp: int, now_ms: int) -> None:
    """Add to `changes` that `event`, which won with its `stamp` at `now_ms` (since 1970), is
    decided again once its publish_at, else its expires, has come.
    """
    due_ms, leaves = appears_ms(event), leaves_ms(event)
    if due_ms <= now_ms and leaves is not None:
        due_ms = leaves
        # What removes a page needs none of its content.
        event = Event(**{name: getattr(event, name) for name in _SAME_PAGE})
    if due_ms > now_ms and event.loc is not None:
        changes.coming[AT + event.loc] = Deferral(stamp, due_ms, event).pack()
        changes.expiry[AT + event.loc] = due_ms
