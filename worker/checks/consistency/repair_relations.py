"""Repair of claims and translation groups that disagree with their pages."""

from __future__ import annotations

from collections.abc import Mapping

from shared.clock import now_ms
from shared.domain import translation_groups
from shared.domain.batch_state import BatchState
from shared.domain.page_record import (
    PLACE_BYTES,
    TOMBSTONE_MS,
    Claim,
    PageRecord,
    digest_of,
    field_of,
)
from shared.domain.translation_groups import GroupMember
from shared.sitemap import fragments
from shared.sitemap.extensions import alternates as links
from shared.store.pages.amendments import Amendment, Amendments
from shared.store.pages.changes import ReadBatch
from shared.store.pages.page_repository import PageRepository
from shared.store.pages.shard_contents import lists
from shared.store.pages.snapshots import At, Seen, Snapshots
from worker.checks.consistency.flaws import Flaw
from worker.checks.consistency.relations import Grouped, claimed, disagrees


class RelationRepair:
    """Repair of the claims and groups of one site; apply.lua or amend.lua writes each repair whole
    or not at all.
    """

    def __init__(self, snapshots: Snapshots, amending: Amendments, pages: PageRepository) -> None:
        self._snapshots, self._amending, self._pages = snapshots, amending, pages

    def claim(self, flaw: Flaw) -> bool:
        """Try once to reconcile a claim and a page; return True if written, or right.

        Raises StoreError.
        """
        owner, digest, keys = flaw.owner, flaw.digest, self._snapshots.keys
        (pair,) = self._snapshots.pairs([(owner, digest)])
        if not disagrees(pair, owner, digest):
            return True
        page, claim = PageRecord.unpack(pair.record), claimed(pair.claim)
        new_page, new_claim = page, claim
        if page.owner == owner:
            loc = self._loc(digest, pair.record)
            if loc and not self._is_elsewhere(owner, claim, page.stamp):
                new_claim = Claim(page.stamp, loc)
            else:
                new_page = page._replace(owner=b"")
        elif claim is not None and not page.owner:
            new_page = page._replace(owner=owner, stamp=max(page.stamp, claim.stamp))
        elif claim is not None:
            new_claim = Claim(claim.stamp, "")
        amendment = Amendment()
        amendment.change(keys.loc(digest), field_of(digest), pair.record, new_page.pack())
        packed = new_claim.pack() if new_claim else b""
        amendment.change(keys.id(owner), field_of(owner), pair.claim, packed)
        if new_claim and not new_claim.loc:
            amendment.scores.append((keys.tombs, b"i" + owner, now_ms() + TOMBSTONE_MS))
        return self._amending.write(amendment)

    def _is_elsewhere(self, owner: bytes, claim: Claim | None, stamp: int) -> bool:
        """Return True if the claim of `owner` prevails over a page with this stamp."""
        if claim is None:
            return False
        if claim.loc:
            (pair,) = self._snapshots.pairs([(owner, digest_of(claim.loc))])
            if lists(pair.record) and PageRecord.unpack(pair.record).owner == owner:
                return True
        return claim.stamp > stamp

    def _loc(self, digest: bytes, record: bytes) -> str:
        (seen,) = self._snapshots.look([At(digest, record[:PLACE_BYTES])])
        return fragments.loc_of(seen.fragment) if seen.fragment else ""

    def group(self, flaw: Flaw) -> bool:
        """Try once to repair a group; return True if written, or right.

        Its members are derived from its pages, and every page is rendered with the resulting
        alternates. Raises StoreError.
        """
        found = Grouped.read(self._snapshots, flaw.group, flaw.pages)
        if found.flaw(flaw.group) is None:
            return True
        return self._pages.apply(*self._regrouped(flaw.group, found))

    def _regrouped(self, group: bytes, found: Grouped) -> tuple[ReadBatch, BatchState]:
        """Return what is stored of a group and its pages, and what they must be."""
        known = BatchState(self._pages.sections.numbers())
        locs = _locs(found)
        before = {loc: found.pages[digest].record for digest, loc in locs.items()}
        members, leaving = _members(group, found, locs)
        now = translation_groups.alternates(members)
        for digest, loc in locs.items():
            seen = found.pages[digest]
            page = PageRecord.unpack(seen.record)
            known.pages[loc] = page
            if loc in members:
                stamp = page.stamp if page.group else members[loc].stamp
                page = page._replace(group=group, stamp=stamp)
                _list(known, loc, page, seen, translation_groups.listed_by(loc, now))
            elif loc in leaving:
                _list(known, loc, page._replace(group=b""), seen, ())
        known.groups[group] = members
        stored = {
            loc.decode(errors="surrogateescape"): GroupMember(0, ()) for loc in found.fields if loc
        }
        number = found.fields.get(b"", b"")
        groups = {group: (number, stored | dict(found.members))}
        return ReadBatch(known, before, {}, groups), known


def _locs(found: Grouped) -> dict[bytes, str]:
    """Return the locs of the listed pages of a group that have a line, by digest."""
    return {
        digest: fragments.loc_of(seen.fragment)
        for digest, seen in found.pages.items()
        if seen.fragment is not None and lists(seen.record)
    }


def _members(
    group: bytes, found: Grouped, locs: Mapping[bytes, str]
) -> tuple[dict[str, GroupMember], set[str]]:
    """Return the members of `group` by the records of its pages, and the pages that must leave it:
    no record says which languages they are in.
    """
    leaving = set[str]()
    members = {loc: member for loc, member in found.members.items() if member.site}
    codes = _codes(found)
    for digest, loc in locs.items():
        page, member = PageRecord.unpack(found.pages[digest].record), found.members.get(loc)
        if page.group == group:
            if member is None and loc in codes:
                member = GroupMember(page.stamp, tuple(codes[loc]))
            if member is None:
                leaving.add(loc)
                continue
        elif page.group or page.stamp or member is None:
            continue  # another group's page; one recreated from its line has no stamp yet
        members[loc] = member
    return members, leaving


def _codes(found: Grouped) -> dict[str, list[str]]:
    """Return the languages of each page, by the alternates that the pages of the group list."""
    codes: dict[str, list[str]] = {}
    for seen in found.pages.values():
        if seen.fragment is not None:
            for code, href in links.read(fragments.linked(seen.fragment).decode()):
                of = codes.setdefault(href, [])
                if code not in of:
                    of.append(code)
    return codes


def _list(
    known: BatchState, loc: str, page: PageRecord, seen: Seen, linked: links.Alternates
) -> None:
    """Let the page list the alternates `linked`."""
    assert seen.fragment is not None
    changed = fragments.with_alternates(seen.fragment, linked)
    if changed != seen.fragment:
        page = page._replace(length=len(changed), digest=fragments.digest(changed))
        known.fragments[loc] = changed
        known.placed[loc] = known.section_of(loc) or 0
    known.pages[loc] = page
