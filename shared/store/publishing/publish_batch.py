"""Batch of a publish pass: the shards it takes, and the shards it has published."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from shared.errors import ShardError
from shared.sitemap import fragments
from shared.sitemap.blocks import Block
from shared.sitemap.fragments import LOC_END
from shared.sitemap.shards import Shard, ShardState
from shared.store.keys import PublishedFile

DAMAGED = (ValueError, TypeError, IndexError, OverflowError, struct.error)
"""Errors raised when a record is read that was not written in that form (RELIABILITY T35)."""


class ShardWork(NamedTuple):
    """One shard as taken by a publisher.

    `patches` maps block number -> key -> new fragment (None: remove); `blocks` is the merged
    content; `file` is the file on disk, None if there is none. `moved` of its pages are listed by
    other files now, and an administrator has `confirmed` that it may shrink to that many (T32).
    `told` are the pages whose change engines are to be notified of.
    """

    shard: Shard
    state: ShardState
    patches: Mapping[int, Mapping[bytes, bytes | None]]
    blocks: Mapping[int, Block]
    file: PublishedFile | None
    moved: int = 0
    confirmed: int | None = None
    told: Sequence[str] = ()


class PublishedShard(NamedTuple):
    """One published shard: `blocks` that changed (None: gone), `file` (None: it has none).

    `lines` are the changed lines, packed (revisions.py), `changed` is their number. `taken` is the
    work it was made from. `held` for a shrink hold, which keeps the published file: the number of
    pages it would list, and the reference number (T32); the patches stay pending.
    """

    taken: ShardWork
    blocks: Mapping[int, Block | None]
    file: PublishedFile | None
    page: int
    line: bytes
    held: tuple[int, int] | None = None
    changed: int = 0
    lines: bytes = b""

    @property
    def shard(self) -> Shard:
        """Shard that was published."""
        return self.taken.shard

    @property
    def state(self) -> ShardState:
        """State of the shard when it was taken."""
        return self.taken.state


class PublishRun(NamedTuple):
    """Run marker: identity of the state, and its number of publishes (F22)."""

    ident: str
    publishes: int


class PublishBatch(NamedTuple):
    """Shards that a publisher may take with their `states`, and the run marker of the state.

    `damaged` maps shards whose state cannot be read to the error.
    """

    run: PublishRun
    shards: list[Shard]
    states: list[ShardState]
    damaged: dict[Shard, ShardError]

    def within(self, most_bytes: int) -> int:
        """Return how many shards, at least one, sum to at most `most_bytes`."""
        total = 0
        for count, state in enumerate(self.states):
            total += state.size
            if count and total > most_bytes:
                return count
        return len(self.states)


def fragment_of(patch: bytes) -> bytes | None:
    """Return the fragment that a stored patch lists; None if it removes a page."""
    return patch[3:] if patch[2:3] in {b"U", b"u"} else None


def patches_of(stored: Iterable[bytes]) -> dict[int, dict[bytes, bytes | None]]:
    """Return stored patches by block: fragments.key -> new fragment, None to remove.

    Raises ValueError if one is not a patch.
    """
    found: dict[int, dict[bytes, bytes | None]] = {}
    for patch in stored:
        block, payload = int.from_bytes(patch[:2], "big"), patch[3:]
        if (fragment := fragment_of(patch)) is not None:
            key = payload[: payload.index(LOC_END) + len(LOC_END)]
            found.setdefault(block, {})[key] = fragment
        elif patch[2:3] not in {b"D", b"d"}:
            raise ValueError(f"{patch[2:3]!r} is no operation of a patch")
        else:
            found.setdefault(block, {})[payload] = None
    return found


def told_of(stored: Iterable[bytes]) -> list[str]:
    """Return the pages among stored patches whose change engines are to be notified of."""
    pieces = (patch[3:] for patch in stored if patch[2:3].islower())
    return list(dict.fromkeys(map(fragments.loc_of, pieces)))


def read_taken(shard: Shard, state: ShardState, stored: Sequence[Any]) -> ShardWork:
    """Return the work on one shard that `PublishState.load` read. Raises any of DAMAGED."""
    patches, blocks, file, (moved, confirmed) = stored
    return ShardWork(
        shard, state, patches_of(patches.values()),
        {int(number): Block.unpack(block) for number, block in blocks.items()},
        PublishedFile.unpack(file) if file else None,
        0 if moved is None else int(moved), None if confirmed is None else int(confirmed),
        told_of(patches.values()),
    )  # fmt: skip


def damage(shard: Shard, error: Exception) -> ShardError:
    """Return the error for a shard with damaged records."""
    return ShardError(f"the records of {shard} in Redis are damaged: {error}")


def index_lines(stored: Mapping[bytes, bytes]) -> dict[int, bytes]:
    """Return index lines by ordinal, without fields that no publish has written."""
    return {
        int(ordinal): line
        for ordinal, line in stored.items()
        if ordinal.isdigit() and line.startswith(b"<sitemap>") and line.endswith(b"</sitemap>\n")
    }
