"""Compare claims, translation groups and feeds with the pages they name.

As with lines, a mismatch between reads of different moments is only a doubt; each doubt is read
again in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from shared.batches import batches
from shared.domain import expiry, translation_groups
from shared.domain.deferral import AT, Deferral
from shared.domain.page_record import Claim, PageRecord, digest_of
from shared.domain.translation_groups import GroupMember
from shared.events.event import SchemaError
from shared.sitemap import fragments
from shared.sitemap.extensions import alternates as links
from shared.store.pages.shard_contents import lists
from shared.store.pages.snapshots import Pair, Seen, Snapshots
from shared.store.pages.summaries import Coming, Summaries
from worker.checks.consistency.flaws import (
    NOT_RECIPROCAL,
    NOT_SCHEDULED,
    WRONG_CLAIM,
    WRONG_FEED,
    Flaw,
)
from worker.checks.consistency.join_spool import PARTS, JoinSpool
from worker.checks.consistency.listed_lines import ASKED_AT_ONCE, LINK_BYTES, link_of
from worker.checks.progress import Step

CLAIM_LEAST = 8
"""Minimum bytes of a claim: its stamp; that of a deleted page has no more."""


class Grouped(NamedTuple):
    """One translation group at one instant: its members by loc, and each page that is a member, or
    says so, by digest.
    """

    members: Mapping[str, GroupMember]
    pages: Mapping[bytes, Seen]
    fields: Mapping[bytes, bytes]

    @classmethod
    def read(cls, snapshots: Snapshots, group: bytes, digests: Sequence[bytes]) -> Grouped:
        """Return the group, with the pages of `digests` besides its members. Raises StoreError."""
        wanted = dict.fromkeys(digests)
        while True:
            wanted |= dict.fromkeys(map(digest_of, _members(snapshots.members([group])[0])))
            fields, pages = snapshots.group(group, list(wanted))
            members = _members(fields)
            if wanted.keys() >= set(map(digest_of, members)):
                return cls(members, pages, fields)

    def of(self, group: bytes) -> set[bytes]:
        """Return the listed pages that say they are in this group."""
        return {
            digest
            for digest, seen in self.pages.items()
            if lists(seen.record) and PageRecord.unpack(seen.record).group == group
        }

    def flaw(self, group: bytes) -> tuple[str, str] | None:
        """Return the page that disagrees and its fault; None if all agree (PROTOCOL H2, H3)."""
        saying, now = self.of(group), translation_groups.alternates(self.members)
        named = {digest_of(loc): loc for loc in self.members}
        for digest, loc in named.items():
            if digest not in saying:
                return loc, "a member of its group that is not listed any more, or in another group"
        for digest in saying:
            seen = self.pages[digest]
            if digest not in named:
                loc = fragments.loc_of(seen.fragment) if seen.fragment else f"page {digest.hex()}"
                return loc, "not a member of its group"
        for digest, loc in named.items():
            line = self.pages[digest].fragment
            if line and fragments.linked(line) != rendered(loc, now):
                return loc, "lists other languages than its group has"
        return None


def rendered(loc: str, now: links.Alternates) -> bytes:
    """Return the links of the page `loc` in a group with the alternates `now`."""
    return links.render(translation_groups.listed_by(loc, now)).encode()


def _members(fields: Mapping[bytes, bytes]) -> dict[str, GroupMember]:
    return {
        loc.decode(errors="replace"): GroupMember.unpack(stored)
        for loc, stored in fields.items()
        if loc and len(stored) > CLAIM_LEAST
    }


def claimed(claim: bytes) -> Claim | None:
    """Return a stored claim; None if it cannot be read."""
    return Claim.unpack(claim) if len(claim) >= CLAIM_LEAST else None


def disagrees(pair: Pair, owner: bytes, digest: bytes) -> str:
    """Return the fault between the claim of `owner` and the page of `digest`; empty if there is
    none.

    The claim of the owner of a listed page must name this page. A claim may still name a page that
    another id, or a later event without an id, has taken since; but not a page with an older stamp.
    """
    claim = claimed(pair.claim)
    page = PageRecord.unpack(pair.record) if lists(pair.record) else None
    points = claim is not None and bool(claim.loc) and digest_of(claim.loc) == digest
    if page is None:
        return ""
    if page.owner == owner and not points:
        return "belongs to an id that is recorded for another page, or unknown"
    if claim is None or not points or page.owner == owner:
        return ""
    if page.stamp < claim.stamp or (not page.owner and page.stamp == claim.stamp):
        return "an id is recorded for this page, which belongs to another"
    return ""


class Relations:
    """Claims, groups and feeds of one site; `owners` and `groups` are the rows of ListedLines."""

    def __init__(self, snapshots: Summaries, owners: JoinSpool, groups: JoinSpool) -> None:
        self._snapshots, self._owners, self._groups = snapshots, owners, groups

    def flaws(self, step: Step) -> Iterator[Flaw]:
        """Yield all flaws. Raises StoreError, CheckError."""
        yield from self._grouped(step)
        for part, claims in enumerate(self._snapshots.claims()):
            yield from self._claims(part, claims, step)
        yield from self._fed()
        for some in batches(self._snapshots.coming(), ASKED_AT_ONCE):
            yield from self._coming(some)

    def _claims(
        self, part: int, claims: Iterable[tuple[bytes, bytes]], step: Step
    ) -> Iterator[Flaw]:
        owned: dict[bytes, set[bytes]] = {}
        for row in self._owners.part(part):
            owned.setdefault(row[:8], set()).add(row[8:])
        doubts: list[tuple[bytes, bytes]] = []
        gone = []
        for owner, stored in claims:
            claim = claimed(stored)
            at = digest_of(claim.loc) if claim and claim.loc else b""
            if claim and not claim.loc:
                gone.append(b"i" + owner)
            has = owned.pop(owner, set())
            doubts += [(owner, digest) for digest in has | ({at} if at else set()) if has != {at}]
        doubts += [(owner, digest) for owner, has in owned.items() for digest in has]
        step(0)
        for some in batches(doubts, ASKED_AT_ONCE):
            for (owner, digest), pair in zip(some, self._snapshots.pairs(some), strict=True):
                if detail := disagrees(pair, owner, digest):
                    claim = claimed(pair.claim)
                    where = claim.loc if claim and claim.loc else f"page {digest.hex()}"
                    yield Flaw(WRONG_CLAIM, where, detail, digest=digest, owner=owner)
            step(0)
        yield from self._unforgettable(gone)

    def _unforgettable(self, gone: Sequence[bytes]) -> Iterator[Flaw]:
        for some in batches(gone, ASKED_AT_ONCE):
            if left := self._snapshots.unburied(some):
                for member, (claim, known) in zip(left, self._snapshots.buried(left), strict=True):
                    if not known and len(claim) == CLAIM_LEAST:
                        where = f"id {member[1:].hex()}"
                        detail = "an id without a page that would never expire"
                        yield Flaw(NOT_SCHEDULED, where, detail, owner=member[1:])

    def _grouped(self, step: Step) -> Iterator[Flaw]:
        with JoinSpool(8) as names:
            for number, name in enumerate(self._snapshots.groups()):
                names.add(name)
                if number % ASKED_AT_ONCE == 0:
                    step(0)
            for part in range(PARTS):
                yield from self._groups_of(part, names, step)

    def _groups_of(self, part: int, names: JoinSpool, step: Step) -> Iterator[Flaw]:
        saying: dict[bytes, dict[bytes, bytes]] = {name: {} for name in names.part(part)}
        for row in self._groups.part(part):
            saying.setdefault(row[:8], {})[row[8:16]] = row[16 : 16 + LINK_BYTES]
        step(0)
        for some in batches(saying, ASKED_AT_ONCE // 10):
            for group, fields in zip(some, self._snapshots.members(some), strict=True):
                if not _agrees(_members(fields), saying[group]):
                    found = Grouped.read(self._snapshots, group, list(saying[group]))
                    if flaw := found.flaw(group):
                        yield Flaw(NOT_RECIPROCAL, *flaw, group=group, pages=tuple(found.pages))
            step(0)

    def _coming(self, keys: Sequence[str]) -> Iterator[Flaw]:
        for key, found in zip(keys, self._snapshots.to_come(keys), strict=True):
            if key.startswith(AT):
                if flaw := _never_due(key, found):
                    yield flaw
                continue
            page = PageRecord.unpack(found.page) if lists(found.page) else None
            at = expiry.appears_ms(found.stored, page) if found.stored and page else None
            late = at is not None and not lists(found.twin) and (found.hour or 0) > at
            if found.stored and (found.hour is None or late):
                detail = "its news would never be listed"
                yield Flaw(NOT_SCHEDULED, key, detail, key=key, when=at or 1)

    def _fed(self) -> Iterator[Flaw]:
        order, items, records = self._snapshots.fed()
        for loc in sorted(order ^ items.keys()):
            detail = "only half of the data for the feeds is stored"
            yield Flaw(WRONG_FEED, loc.decode(errors="replace"), detail, key=_text(loc))
        for loc in sorted(order & items.keys() & records.keys()):
            if not lists(records[loc]):
                detail = "in the feeds, but not listed"
                yield Flaw(WRONG_FEED, loc.decode(errors="replace"), detail, key=_text(loc))


def _never_due(key: str, found: Coming) -> Flaw | None:
    if not found.stored or found.hour is not None:
        return None
    try:
        due = Deferral.unpack(found.stored).due_ms
    except SchemaError:
        due = 1  # the worker that decides it says what is wrong with it
    return Flaw(NOT_SCHEDULED, key, "its page would never appear or leave", key=key, when=due)


def _text(loc: bytes) -> str:
    return loc.decode(errors="replace")


def _agrees(members: Mapping[str, GroupMember], saying: Mapping[bytes, bytes]) -> bool:
    """Return True if each member has a page in the group with exactly the due links."""
    if len(members) != len(saying):
        return False
    now = translation_groups.alternates(members)
    return all(saying.get(digest_of(loc)) == link_of(rendered(loc, now)) for loc in members)
