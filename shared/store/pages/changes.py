"""Changes of a batch: the records it was read from, and the rows that apply.lua writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shared.domain.batch_state import NEWS, BatchState, NetChange, net
from shared.domain.page_record import PLACE_BYTES, PageRecord, digest_of
from shared.domain.translation_groups import GroupMember
from shared.errors import SitemapdError
from shared.sitemap import fragments
from shared.sitemap.feed_writer import FeedItem
from shared.store.keys import field
from shared.store.pages.lookup import loc_of

MOST_PATCHES = 2_000
MOST_BYTES = 4 * 1024 * 1024
"""Limits of one call of apply.lua, which blocks Redis: 0.03 ms a patch on an idle core, 0.1 ms a
patch and 30 ms a MiB of fragments on two cores under a load of 7 (measured).
"""

_NOT_LISTED = bytes(3)


class BatchTooLargeError(SitemapdError):
    """A batch of several events exceeds what one call may write: take fewer events at a time."""


class ReadBatch(NamedTuple):
    """Batch state, and the stored records it was read from: of pages, claims, groups (the number of
    the last change, and the members) and feeds. A `divisible` batch can be split, and must be if it
    is too large.
    """

    known: BatchState
    pages: dict[str, bytes]
    claims: dict[bytes, bytes]
    groups: dict[bytes, tuple[bytes, dict[str, GroupMember]]]
    feed: Mapping[str, FeedItem | None] = {}
    divisible: bool = False

    def bound(self, patches: Sequence[tuple[bytes, int]]) -> None:
        """Raise BatchTooLargeError if these patches, each a translation group (empty: none) and a
        number of bytes, are too many for one call.

        One event may exceed the limits if it changes a large group: it is applied as a whole.
        Several events of that group need no more than that together, and would write it repeatedly
        if taken one by one.
        """
        size = sum(each for _, each in patches)
        if not self.divisible or (len(patches) <= MOST_PATCHES and size <= MOST_BYTES):
            return
        counts, sizes = Counter[bytes](), Counter[bytes]()
        for group, each in patches:
            if group:
                counts[group] += 1
                sizes[group] += each
        most = max(MOST_PATCHES, 2 * max(counts.values(), default=0))
        if len(patches) > most or size > max(MOST_BYTES, 2 * max(sizes.values(), default=0)):
            raise BatchTooLargeError(f"{len(patches)} patches, {size} bytes")


class BatchChanges(NamedTuple):
    """Rows that apply.lua writes; described there."""

    pages: Sequence[Sequence[Any]]
    claims: Sequence[tuple[bytes, bytes, bytes]] = ()
    groups: Sequence[Sequence[Any]] = ()
    expiry: Sequence[tuple[str, int]] = ()
    feed: Sequence[tuple[str, int, bytes]] = ()
    coming: Sequence[tuple[str, bytes]] = ()
    resyncs: Sequence[tuple[str, int]] = ()


def changes_of(batch: ReadBatch) -> BatchChanges:
    """Return the changes of `batch.known` to what was stored. Raises BatchTooLargeError."""
    known = batch.known
    claims = [
        (owner, batch.claims[owner], after)
        for owner, claim in known.claims.items()
        if claim is not None and (after := claim.pack()) != batch.claims[owner]
    ]
    fed = {loc: item for loc, item in known.feed.items() if item != batch.feed[loc]}
    ops = net(known, batch.pages)
    batch.bound([(_group_of(known, op.loc), len(op.fragment or b"")) for op in ops])
    return BatchChanges(
        [
            *(_page(op, fed, told=loc_of(op.loc) in known.told) for op in ops),
            *_compared(batch),
            *_fed_alone(batch, fed, ops),
        ],
        claims,
        [*_group_changes(known, batch.groups)],
        [*known.expiry.items()],
        [(loc, i.updated_ms, i.pack()) if i else (loc, 0, b"") for loc, i in fed.items()],
        [*known.coming.items()],
    )


def _group_of(known: BatchState, loc: str) -> bytes:
    page = known.pages[loc]
    return page.group if page else b""


def _page(op: NetChange, fed: Collection[str], *, told: bool) -> list[Any]:
    if op.fragment is not None:
        kind, payload = "P", op.fragment
    elif op.after.startswith(_NOT_LISTED) and PageRecord.was_live(op.before):
        kind, payload = "E" if op.expired else "D", fragments.key(loc_of(op.loc))
    else:
        live = not op.after.startswith(_NOT_LISTED)
        kind, payload = "F" if live and op.loc in fed else "T", b""
    counts = int(not op.loc.startswith(NEWS))
    return [
        field(op.digest), op.before, op.after, kind, payload, op.section or 0, op.digest, counts,
        int(told),
    ]  # fmt: skip


def _fed_alone(
    batch: ReadBatch, fed: Collection[str], ops: Sequence[NetChange]
) -> Iterator[list[Any]]:
    """Yield pages that change only in the feeds: by an event with an equal stamp."""
    if not fed:
        return
    placed = {op.loc for op in ops}
    for loc in fed:
        if loc not in placed and PageRecord.was_live(stored := batch.pages[loc]):
            digest = digest_of(loc)
            yield [field(digest), stored, stored[PLACE_BYTES:], "F", b"", 0, digest, 0, 0]


def _compared(batch: ReadBatch) -> Iterator[list[Any]]:
    """Yield rows that are only compared: entries that leave the expiry schedule, and the pages of
    news that is or was scheduled.
    """
    done = {key: None for key, when in batch.known.expiry.items() if when == 0}
    for key in {**done, **dict.fromkeys(map(loc_of, batch.known.coming))}:
        page, stored = batch.known.pages[key], batch.pages[key]
        if (page.tail() if page else b"") == stored[PLACE_BYTES:]:
            digest = digest_of(key)
            yield [field(digest), stored, stored[PLACE_BYTES:], "N", b"", 0, digest, 0, 0]


def _group_changes(
    known: BatchState, stored: Mapping[bytes, tuple[bytes, Mapping[str, GroupMember]]]
) -> Iterator[list[Any]]:
    """Yield the changes of each group: its name and number, members to set, members that left."""
    for group, (number, before) in stored.items():
        after = known.groups[group]
        if after != before:
            new = [(loc, m.pack()) for loc, m in after.items() if before.get(loc) != m]
            left = [loc for loc in before if loc not in after]
            yield [group.hex(), number, [part for pair in new for part in pair], left]
