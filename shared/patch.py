"""Decide what one event means. Pure: what is known, the event and its arrival in, a decision out.

Guarantees: applying the decisions for the same events in any order ends in the same entries, as
long as equal versions keep their order of arrival, pages with ids come from a sender that never
has two of them at one URL at one time, and either all events of a page name its section or none.
Not guaranteed: the order of entries across blocks, which is that of first arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from shared import fragments, w3c
from shared.entries import Entry
from shared.events import Event
from shared.locator import PLACE_BYTES, Claim, Located, digest_of, owner_of, stamp

DEFAULT_SECTION = "pages"
FARTHEST_ZONE_MS = 14 * 3_600_000
SKEW_MS = 300_000
"""How far ahead of us a sender's clock may be before its lastmod counts as in the future (M5)."""


class Arrival(NamedTuple):
    """When an event was accepted: its id in the inbox, milliseconds and sequence."""

    ms: int
    sequence: int

    @classmethod
    def of(cls, stream_id: str) -> Arrival:
        """The arrival that a stream id `ms-sequence` names."""
        ms, _, sequence = stream_id.partition("-")
        return cls(int(ms), int(sequence))


@dataclass(slots=True)
class Known:
    """What the store knows of the pages that a batch is about, updated decision by decision."""

    sections: Mapping[str, int]
    pages: dict[str, Located | None] = field(default_factory=dict)
    claims: dict[bytes, Claim | None] = field(default_factory=dict)
    fragments: dict[str, bytes] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)

    def section_of(self, loc: str) -> int | None:
        """The section that lists `loc`, or will once this batch is applied."""
        if loc in self.placed:
            return self.placed[loc]
        page = self.pages.get(loc)
        return page.place.section if page and page.place else None


class Decision(NamedTuple):
    """What was decided for one event: `reason` in words, whether published bytes change."""

    changed: bool
    reason: str


def subjects(event: Event) -> tuple[str | None, bytes]:
    """What must be known to decide `event`: a loc and an owner (empty: none)."""
    if event.id is None:
        return event.loc, b""
    return event.loc, owner_of(event.source, event.kind, event.id, event.locale)


def decide(known: Known, event: Event, arrival: Arrival, *, hints: bool) -> Decision:
    """Decide `event` and record the outcome in `known`.

    `hints` says whether changefreq and priority are listed (PROTOCOL M8: off unless wanted).
    """
    loc, owner = subjects(event)
    when = stamp(event.version, *arrival)
    left = Decision(changed=False, reason="")
    why = _gone(event)
    if owner:
        claim = known.claims.get(owner)
        if claim and when < claim.stamp:
            return Decision(changed=False, reason="older than what is known of this id")
        if claim and claim.loc and claim.loc != loc:
            left = _leave(known, claim.loc, owner, when, why)
        known.claims[owner] = Claim(when, "" if why or loc is None else loc)
    if loc is None:
        return left if left.changed else Decision(changed=False, reason="no page with this id")
    if why:
        gone = _remove(known, loc, owner, when, why)
        return left if left.changed and not gone.changed else gone
    put = _put(known, event, loc, owner, when, arrival, hints=hints)
    if left.changed:
        return Decision(changed=True, reason=f"moved: {put.reason}")
    return put


def _gone(event: Event) -> str:
    """Why the page of `event` must not be listed (PROTOCOL L8), empty if it may."""
    if event.type == "delete":
        return "deleted"
    if event.noindex:
        return "noindex"
    if event.canonical is not None and event.canonical != event.loc:
        return "not canonical"
    return ""


def _leave(known: Known, loc: str, owner: bytes, when: int, why: str) -> Decision:
    """The page of `owner` is no longer at `loc`; whoever else owns `loc` by now keeps it."""
    page = known.pages.get(loc)
    if not page or page.owner != owner:
        return Decision(changed=False, reason="its old URL belongs to another page by now")
    return _remove(known, loc, owner, when, why or "moved")


def _remove(known: Known, loc: str, owner: bytes, when: int, why: str) -> Decision:
    page = known.pages.get(loc)
    if page and when < page.stamp:
        return Decision(changed=False, reason="older than what is known of this URL")
    if page and page.live and owner and page.owner and page.owner != owner:
        return Decision(changed=False, reason="this URL belongs to another page by now")
    # A tombstone even for a page never seen: an older event may still be under way.
    known.pages[loc] = Located(page.place if page else None, 0, when, bytes(5), owner)
    known.fragments.pop(loc, None)
    if page and page.live:
        return Decision(changed=True, reason=why)
    return Decision(changed=False, reason=f"{why}, and it was not listed")


def _put(
    known: Known, event: Event, loc: str, owner: bytes, when: int, arrival: Arrival, *, hints: bool
) -> Decision:
    page = known.pages.get(loc)
    if page and when < page.stamp and not _vacated(page, owner):
        return Decision(changed=False, reason="older than what is known of this URL")
    fragment = fragments.render(_entry(event, loc, arrival, hints=hints))
    digest = fragments.digest(fragment)
    here = known.section_of(loc)
    there = known.sections[event.section] if event.section else here
    if there is None:
        there = known.sections[DEFAULT_SECTION]
    new = Located(
        page.place if page else None, len(fragment), when, digest,
        owner or (page.owner if page and page.live else b""),
    )  # fmt: skip
    known.pages[loc] = new
    if page and page.live and page.digest == digest and here == there:
        return Decision(changed=False, reason="same content")
    known.fragments[loc] = fragment
    known.placed[loc] = there
    if page and page.live:
        return Decision(changed=True, reason="changed")
    return Decision(changed=True, reason="added")


def _vacated(page: Located, owner: bytes) -> bool:
    """Whether another id left this URL: when it did says nothing about the page of `owner`.

    Two pages that swap their URLs leave them at two times, and either may be heard of first.
    """
    return not page.live and bool(owner and page.owner) and page.owner != owner


def _entry(event: Event, loc: str, arrival: Arrival, *, hints: bool) -> Entry:
    lastmod = event.lastmod
    if lastmod is not None and in_future(lastmod, arrival.ms):
        lastmod = None  # PROTOCOL M5: worth less than none
    if hints:
        return Entry(loc, lastmod, event.changefreq, event.priority)
    return Entry(loc, lastmod)


def in_future(lastmod: str, now_ms: int) -> bool:
    """Whether the canonical `lastmod` lies after `now_ms`, senders' clocks and zones allowed for.

    A date alone may be that of the farthest time zone, 14 hours ahead of UTC.
    """
    ahead_ms = SKEW_MS if len(lastmod) > _DATE else FARTHEST_ZONE_MS
    # Canonical dates and times sort as text.
    return lastmod > _moment((now_ms + ahead_ms) // 1000)[: len(lastmod)]


# The events of a batch arrived within the same few seconds.
_moment = lru_cache(16)(w3c.from_epoch_s)
_DATE = len("2026-11-21")


class Op(NamedTuple):
    """One page's net change: from `before` (as stored, empty: unknown) to `after` (Located.tail).

    `fragment` is set when the listed bytes change, `section` is where they belong.
    """

    loc: str
    digest: bytes
    before: bytes
    after: bytes
    fragment: bytes | None
    section: int | None


def net(known: Known, before: Mapping[str, bytes]) -> list[Op]:
    """The net operations of a batch: what `known` has become against what was stored."""
    ops = []
    for loc, page in known.pages.items():
        stored = before[loc]
        # The place is the store's to give, and no decision changes it.
        if page is None or (after := page.tail()) == stored[PLACE_BYTES:]:
            continue
        fragment, section = known.fragments.get(loc), known.section_of(loc)
        if fragment is not None and Located.lists(stored, page.digest, section):
            fragment = None  # changed and changed back within the batch
        ops.append(Op(loc, digest_of(loc), stored, after, fragment, section))
    return ops
