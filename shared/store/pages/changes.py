"""Rows of one batch: the records it is decided on, and the changes that apply.lua writes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from isal import isal_zlib

from shared.domain.batch_state import NEWS, BatchState
from shared.domain.deferral import AT
from shared.domain.page_record import PLACE_BYTES, PageRecord, digest_of
from shared.domain.translation_groups import GroupMember
from shared.errors import SitemapdError
from shared.sitemap import fragments
from shared.sitemap.feed_writer import FeedItem
from shared.store.client import Scripts

_ROW = 8
"""Values of each page in BatchChanges."""
MOST_PATCHES = 2_000
MOST_BYTES = 4 * 1024 * 1024
"""Limits of one call of apply.lua, which blocks Redis: 0.03 ms a patch on an idle core, 0.1 ms a
patch and 30 ms a MiB of fragments on two cores under a load of 7 (measured).
"""

_NOT_LISTED = bytes(3)
_LOG_LEVEL = 1  # 500 events: 0.4 ms


class BatchTooLargeError(SitemapdError):
    """A batch of several events exceeds what one call may write: take fewer events at a time."""


class ReadBatch(NamedTuple):
    """State of a batch as read, and the stored records it was read from: of pages, claims, groups
    (the number of the last change, and the members) and feeds. A `divisible` batch can be split,
    and must be if it is too large.
    """

    state: BatchState
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


class NetChange(NamedTuple):
    """Net change of one page: from `before` (as stored, empty: none) to `after` (PageRecord.tail).

    `fragment` is set when the listed bytes change, `section` is the number of their section.
    `expired` is True if the page leaves because its time is over.
    """

    key: str
    digest: bytes
    before: bytes
    after: bytes
    fragment: bytes | None
    section: int
    expired: bool = False


class BatchChanges(NamedTuple):
    """Rows that apply.lua writes; described there."""

    pages: Sequence[Sequence[Any]]
    claims: Sequence[tuple[bytes, bytes, bytes]] = ()
    groups: Sequence[Sequence[Any]] = ()
    expiry: Sequence[tuple[str, int]] = ()
    feed: Sequence[tuple[str, int, bytes]] = ()
    coming: Sequence[tuple[str, bytes]] = ()
    resyncs: Sequence[tuple[str, int]] = ()

    def columns(self) -> list[tuple[Any, ...]]:
        """Return the values of `pages` by column, as apply.lua takes them."""
        return [*zip(*self.pages, strict=True)] or [()] * _ROW


def read_records(
    scripts: Scripts, prefix: str, keys: Sequence[str], owners: Sequence[bytes]
) -> tuple[dict[str, bytes], dict[bytes, bytes], bytes, int]:
    """Return the stored records of pages and claims, empty where there is none; then the numbering
    of the site's sections, and how many it has. Raises StoreDownError, StoreError.
    """
    digests = b"".join(map(digest_of, keys))
    *stored, numbering, sections = scripts(
        "pages/read_records", [f"{prefix}inbox"], prefix, digests, b"".join(owners)
    )
    pages = dict(zip(keys, stored, strict=False))
    return pages, dict(zip(owners, stored[len(keys) :], strict=True)), numbering, sections


def loc_of(key: str) -> str:
    """Return the loc of the page, news entry or deferral `key`."""
    return key.removeprefix(NEWS).removeprefix(AT)


def unpacked(pages: Mapping[str, bytes]) -> dict[str, PageRecord | None]:
    """Return the stored records unpacked, None where there is none."""
    return {key: PageRecord.unpack(stored) if stored else None for key, stored in pages.items()}


def changes_of(read: ReadBatch, after: BatchState) -> BatchChanges:
    """Return the changes from what was `read` to `after`. Raises BatchTooLargeError."""
    claims = [
        (owner, read.claims[owner], packed)
        for owner, claim in after.claims.items()
        if claim is not None and (packed := claim.pack()) != read.claims[owner]
    ]
    fed = {loc: item for loc, item in after.feed.items() if item != read.feed[loc]}
    net = net_changes(after, read.pages)
    read.bound([(_group_of(after, each.key), len(each.fragment or b"")) for each in net])
    pages = [_page(each, fed, told=loc_of(each.key) in after.notified) for each in net]
    if fed:
        pages += _fed_alone(read, fed, net)
    if after.expiry or after.coming:
        pages += _compared(read, after)
    return BatchChanges(
        pages,
        claims,
        [*_group_changes(after, read.groups)] if read.groups else (),
        [*after.expiry.items()],
        [(loc, i.updated_ms, i.pack()) if i else (loc, 0, b"") for loc, i in fed.items()],
        [*after.coming.items()],
    )


def net_changes(after: BatchState, before: Mapping[str, bytes]) -> list[NetChange]:
    """Return the net changes of a batch: the state `after` it against the stored records
    `before`.
    """
    found = []
    for key, page in after.pages.items():
        stored = before[key]
        # Only the store assigns a place, and no decision changes it.
        if page is None or (tail := page.tail()) == stored[PLACE_BYTES:]:
            continue
        fragment, section = after.fragments.get(key), after.placed.get(key, 0)
        if fragment is not None and stored and PageRecord.lists(stored, page.digest, section):
            fragment = None  # changed and changed back within the batch
        expired = key in after.expired
        found.append(NetChange(key, digest_of(key), stored, tail, fragment, section, expired))
    return found


def log_entry(decisions: Sequence[tuple[str, str, str, bool]], payloads: Sequence[bytes]) -> bytes:
    """Return the event log's entry of one batch: its decisions (event id, loc, reason, whether
    bytes change), and the events in the same order, if any. event_log.unpack reads it.
    """
    text = json.dumps(decisions, separators=(",", ":")).encode()
    return isal_zlib.compress(b"\n".join((text, *payloads)), _LOG_LEVEL)


def _group_of(after: BatchState, key: str) -> bytes:
    page = after.pages[key]
    return page.group if page else b""


def _page(change: NetChange, fed: Collection[str], *, told: bool) -> list[Any]:
    key, digest, before, tail, fragment, section, expired = change
    if fragment is not None:
        kind, payload = "P", fragment
    elif tail.startswith(_NOT_LISTED) and PageRecord.was_live(before):
        kind, payload = "E" if expired else "D", fragments.key(loc_of(key))
    else:
        live = not tail.startswith(_NOT_LISTED)
        kind, payload = "F" if live and key in fed else "T", b""
    counts = int(not key.startswith(NEWS))
    return [digest, before, tail, kind, payload, section, counts, int(told)]


def _fed_alone(
    read: ReadBatch, fed: Collection[str], net: Sequence[NetChange]
) -> Iterator[list[Any]]:
    """Yield pages that change only in the feeds: by an event with an equal stamp."""
    placed = {each.key for each in net}
    for loc in fed:
        if loc not in placed and PageRecord.was_live(stored := read.pages[loc]):
            yield [digest_of(loc), stored, stored[PLACE_BYTES:], "F", b"", 0, 0, 0]


def _compared(read: ReadBatch, after: BatchState) -> Iterator[list[Any]]:
    """Yield rows that are only compared: entries that leave the expiry schedule, and the pages of
    news and events that are or were scheduled.
    """
    done = {key.removeprefix(AT): None for key, when in after.expiry.items() if when == 0}
    for key in {**done, **dict.fromkeys(map(loc_of, after.coming))}:
        page, stored = after.pages[key], read.pages[key]
        if (page.tail() if page else b"") == stored[PLACE_BYTES:]:
            yield [digest_of(key), stored, stored[PLACE_BYTES:], "N", b"", 0, 0, 0]


def _group_changes(
    after: BatchState, stored: Mapping[bytes, tuple[bytes, Mapping[str, GroupMember]]]
) -> Iterator[list[Any]]:
    """Yield the changes of each group: its name and number, members to set, members that left."""
    for group, (number, before) in stored.items():
        members = after.groups[group]
        if members != before:
            new = [(loc, m.pack()) for loc, m in members.items() if before.get(loc) != m]
            left = [loc for loc in before if loc not in members]
            yield [group.hex(), number, [part for pair in new for part in pair], left]
