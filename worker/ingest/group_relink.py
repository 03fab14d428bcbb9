"""Translation groups of a batch: give every page the alternates that its group now has, and note
the groups that other sites are to be told of.
"""

from __future__ import annotations

from shared.domain.batch_state import BatchState
from shared.domain.decide import include
from shared.domain.entries import group_alternates
from shared.domain.translation_groups import GROUP, own
from shared.errors import LostLineError
from shared.store.pages.changes import ReadBatch, unpacked
from shared.store.pages.page_repository import PageRepository


def note(read: ReadBatch, after: BatchState, now_ms: int) -> None:
    """Add to `after` that other sites are to be told, from `now_ms` (since 1970) on, of the groups
    whose own members differ from those `read`.
    """
    for group, members in after.groups.items():
        if own(members) != own(read.groups[group][1]):
            after.expiry[GROUP + group.hex()] = now_ms


def relink(pages: PageRepository, read: ReadBatch, after: BatchState) -> None:
    """Add to `after`, the state after a batch, the pages whose alternates changed with their group;
    their stored records are added to `read`.

    Only members whose set changed are read, with their current fragments. Raises LostLineError
    if a fragment is missing: it is being published, so decide again; if the error persists, the
    state is damaged. Raises BatchTooLargeError if these are more pages than one call may write.
    """
    # One pass; more where the store was edited and a set names pages that have no record.
    while due := group_alternates.outdated(after):
        read.bound([(group, 0) for group, _ in due.values()])
        more = pages.lookup.records([loc for loc in due if loc not in read.pages])[0]
        read.pages.update(more)
        after.pages.update(unpacked(more))
        after.sections, after.names = pages.number(after.pages)
        here = {loc: after.fragments[loc] for loc in due if loc in after.fragments}
        there = {loc: page for loc in due if loc not in here and (page := after.pages[loc])}
        here |= pages.lookup.current(there)
        for loc, (group, linked) in due.items():
            page = after.pages[loc]
            if page is not None and page.live and loc not in here:
                raise LostLineError(loc)
            include(after, group_alternates.relink(after, loc, group, here.get(loc, b""), linked))
