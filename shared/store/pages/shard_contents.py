"""Stored content of one shard, and the lines it has once its patches are merged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shared.domain.batch_state import NEWS
from shared.domain.page_record import PageRecord, digest_of
from shared.errors import ShardError
from shared.sitemap import blocks, fragments
from shared.sitemap.blocks import Block
from shared.sitemap.fragments import LOC_END
from shared.sitemap.shards import Shard, ShardState
from shared.store.publishing.publish_batch import patches_of
from shared.store.publishing.publish_work import fragment_of

RECORD_BYTES = frozenset({22, 30, 38})
STATE_BYTES = len(ShardState(0, 0, 0, 0).pack())

_NEWS_MARK = b"<news:news>"


def key_of(fragment: bytes) -> str:
    """Return the key of the page that a line lists: batch_state.NEWS and the loc for news."""
    loc = fragments.loc_of(fragment)
    return NEWS + loc if _NEWS_MARK in fragment else loc


def readable(stored: bytes) -> bool:
    """Return True if `stored` has the length of a page record."""
    return len(stored) in RECORD_BYTES


def lists(stored: bytes) -> bool:
    """Return True if `stored` (empty: none) is the readable record of a listed page."""
    return readable(stored) and PageRecord.was_live(stored)


def state_of(stored: bytes) -> ShardState:
    """Return the state of a shard as stored; zeros if it is missing or has another length."""
    return ShardState.unpack(stored) if len(stored) == STATE_BYTES else ShardState(0, 0, 0, 0)


class ShardLines(NamedTuple):
    """One block of a shard: `merged` is the content of `block` (None: there is none yet), `listed`
    are its fragments once its patches are merged.
    """

    number: int
    block: Block | None
    merged: bytes
    listed: list[bytes]

    @property
    def head(self) -> tuple[int, int]:
        """Expected head of the block: number of pages, extensions."""
        return self.merged.count(fragments.END), fragments.uses(self.merged)


class ShardContent(NamedTuple):
    """Stored content of one shard: each mapping as in Redis; empty `state` and `file`: none."""

    shard: Shard
    state: bytes
    file: bytes
    blocks: Mapping[int, bytes]
    taking: Mapping[bytes, bytes]
    pending: Mapping[bytes, bytes]

    @property
    def known(self) -> ShardState:
        """State of the shard; zeros if there is none."""
        return state_of(self.state)

    def lines(self) -> Iterator[ShardLines]:
        """Yield the blocks with their merged lines. Raises ShardError if one is damaged."""
        try:
            older, newer = patches_of(self.taking.values()), patches_of(self.pending.values())
        except (ValueError, IndexError) as error:
            raise ShardError(f"a patch is damaged in the store: {error}") from error
        for number in sorted({*self.blocks, *older, *newer}):
            block = Block.unpack(self.blocks[number]) if number in self.blocks else None
            merged = raw = block.raw() if block else b""
            if patches := {**older.get(number, {}), **newer.get(number, {})}:
                raw, _ = blocks.edit(raw, patches)
            yield ShardLines(number, block, merged, blocks.split(raw))

    def misnamed(self) -> Iterator[tuple[str, bytes]]:
        """Yield patches not named after their page: `taking` or `pending`, and the name."""
        for kind, patches in (("taking", self.taking), ("pending", self.pending)):
            for name, patch in patches.items():
                if name not in _names(patch):
                    yield kind, name


def _names(patch: bytes) -> set[bytes]:
    """Return the names that a stored patch may have."""
    block, payload = patch[:2], patch[3:]
    if LOC_END not in payload:
        return set()
    if fragment_of(patch) is not None:
        return {digest_of(key_of(payload)) + block}
    loc = fragments.loc_of(payload)
    return {digest_of(loc) + block, digest_of(NEWS + loc) + block}


def content_of(shard: Shard, replies: Sequence[Any]) -> ShardContent:
    """Return the content of `shard` from five replies of Redis, in the order of the fields."""
    state, file, blocks_, taking, pending = replies
    return ShardContent(shard, state or b"", file or b"", numbered(blocks_), taking, pending)


def numbered(stored: Mapping[bytes, bytes]) -> dict[int, bytes]:
    """Return `stored` with its fields as numbers."""
    return {int(number): value for number, value in stored.items()}
