"""A site that lives in dicts: what was decided is kept the way the store keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from shared.domain.batch_state import BatchState, Outcome, Policy
from shared.domain.decide_batch import ArrivedEvent, decide_all
from shared.domain.page_record import PLACE_BYTES, Arrival, Claim, PageRecord, Place, subjects
from shared.domain.routing import Routing
from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.store.pages.changes import NetChange, net_changes

SECTIONS = {"pages": 1, "posts": 2}
NOW = 1_795_256_430_000
"""2026-11-21T10:20:30Z, in milliseconds."""

PREFIX = "https://www.example.com/"


def up(name: str, version: int | None = None, **members: Any) -> Event:
    """The page `name` is there; `day` is short for a lastmod, the content of these tests."""
    day = members.pop("day", 1)
    members.setdefault("lastmod", f"2026-01-{day:02}")
    return Event("upsert", PREFIX + name, version=version, **members)


def gone(name: str | None = None, version: int | None = None, **members: Any) -> Event:
    """The page `name`, or the one with the given id, is deleted."""
    return Event("delete", name and PREFIX + name, version=version, **members)


@dataclass
class Site:
    """Records and claims as stored, and what is listed: loc -> (section, fragment)."""

    hints: bool = False
    pages: dict[str, bytes] = field(default_factory=dict)
    claims: dict[bytes, bytes] = field(default_factory=dict)
    listed: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    ops: list[NetChange] = field(default_factory=list)
    clock: int = NOW

    def take(self, *events: Event) -> list[Outcome]:
        """Each event arrives a second after the other, in a batch of its own."""
        return [decision for event in events for decision in self.batch([event])]

    def batch(self, events: Iterable[Event], at: Arrival | None = None) -> list[Outcome]:
        """One batch as the worker settles it; `ops` are its net changes."""
        events = list(events)
        known, before = self._read(events)
        decisions = []
        for event in events:
            self.clock += 1_000
            arrived = ArrivedEvent(event, at or Arrival(self.clock, 0))
            policy = Policy(Routing({}), self.hints, self.clock)
            (decision,), known = decide_all(known, [arrived], policy)
            decisions.append(decision)
        self.ops = net_changes(known, before)
        for op in self.ops:
            self._apply(op)
        self.claims |= {owner: claim.pack() for owner, claim in known.claims.items() if claim}
        return decisions

    def _read(self, events: list[Event]) -> tuple[BatchState, dict[str, bytes]]:
        wanted = [subjects(event) for event in events]
        known = BatchState(SECTIONS, {number: name for name, number in SECTIONS.items()})
        for _, owner in wanted:
            stored = self.claims.get(owner)
            known.claims[owner] = Claim.unpack(stored) if stored else None
        left = [claim.loc for claim in known.claims.values() if claim and claim.loc]
        locs = dict.fromkeys([loc for loc, _ in wanted if loc is not None] + left)
        before = {loc: self.pages.get(loc, b"") for loc in locs}
        known.pages = {loc: PageRecord.unpack(b) if b else None for loc, b in before.items()}
        return known, before

    def _apply(self, op: NetChange) -> None:
        assert op.before == self.pages.get(op.key, b"")
        place = op.before[:PLACE_BYTES] or b"\xff" * PLACE_BYTES
        if op.fragment is not None:
            place = Place(op.section, 1, 0).pack()
            assert self.listed.get(op.key) != (op.section, op.fragment)
            self.listed[op.key] = op.section, op.fragment
        elif not PageRecord.unpack(place + op.after).live:
            self.listed.pop(op.key, None)
        self.pages[op.key] = place + op.after

    @property
    def entries(self) -> dict[str, Entry]:
        """What is listed, by the name of the page."""
        return {
            loc.removeprefix(PREFIX): fragments.parse(fragment)
            for loc, (_, fragment) in self.listed.items()
        }

    @property
    def days(self) -> dict[str, int]:
        """The same: name -> the day of its lastmod."""
        return {name: int((entry.lastmod or "-0")[-2:]) for name, entry in self.entries.items()}

    @property
    def sections(self) -> dict[str, str]:
        """name -> the section that lists it."""
        names = {number: name for name, number in SECTIONS.items()}
        return {loc.removeprefix(PREFIX): names[number] for loc, (number, _) in self.listed.items()}
