"""A publisher's work: what it takes up, and what it gives back."""

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
"""What reading a record raises that is not what was once written (RELIABILITY T35)."""


class ShardWork(NamedTuple):
    """One shard as a publisher takes it up.

    `patches` maps block number -> key -> new fragment (None: remove); `blocks` is what is merged
    so far; `file` is what is on disk, None if nothing is. `moved` of its pages are listed by other
    files now, and an administrator has `confirmed` that it may shrink to that many (T32). `told`
    are the pages whose change search engines are to be told of.
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
    """One shard as it was published: `blocks` changed (None: gone), `file` None if it has none.

    `lines` are those that changed, packed (revisions.py), `changed` how many.
    `taken` is what that was made of. `held` if it stays as it was published before: the pages it
    would list, and those it is measured against (T32); the patches wait on, out of the way.
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
        """Which shard."""
        return self.taken.shard

    @property
    def state(self) -> ShardState:
        """The shard's state when it was taken up."""
        return self.taken.state


class PublishRun(NamedTuple):
    """Which life of the state this is and how often it was published: the run marker (F22)."""

    ident: str
    publishes: int


class PublishBatch(NamedTuple):
    """What a publisher may take up: its `shards` and their `states`, and whose state that is.

    Of `damaged` the state cannot be read, and why.
    """

    run: PublishRun
    shards: list[Shard]
    states: list[ShardState]
    damaged: dict[Shard, ShardError]

    def within(self, most_bytes: int) -> int:
        """How many of them, at least one, come to no more than that."""
        total = 0
        for count, state in enumerate(self.states):
            total += state.size
            if count and total > most_bytes:
                return count
        return len(self.states)


def fragment_of(patch: bytes) -> bytes | None:
    """The fragment that a stored patch lists; None if it removes a page."""
    return patch[3:] if patch[2:3] in {b"U", b"u"} else None


def patches_of(stored: Iterable[bytes]) -> dict[int, dict[bytes, bytes | None]]:
    """Stored patches by block: fragments.key -> new fragment, None to remove.

    ValueError for what is no patch.
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
    """The pages among stored patches whose change search engines are to be told of."""
    pieces = (patch[3:] for patch in stored if patch[2:3].islower())
    return list(dict.fromkeys(map(fragments.loc_of, pieces)))


def read_taken(shard: Shard, state: ShardState, stored: Sequence[Any]) -> ShardWork:
    """What `Publishing.load` read of one shard; any of DAMAGED if that was never written so."""
    patches, blocks, file, (moved, confirmed) = stored
    return ShardWork(
        shard, state, patches_of(patches.values()),
        {int(number): Block.unpack(block) for number, block in blocks.items()},
        PublishedFile.unpack(file) if file else None,
        0 if moved is None else int(moved), None if confirmed is None else int(confirmed),
        told_of(patches.values()),
    )  # fmt: skip


def damage(shard: Shard, error: Exception) -> ShardError:
    """Why `shard` is held back."""
    return ShardError(f"the records of {shard} in Redis are damaged: {error}")


def index_lines(stored: Mapping[bytes, bytes]) -> dict[int, bytes]:
    """Index lines by ordinal, without what no publish has written there."""
    return {
        int(ordinal): line
        for ordinal, line in stored.items()
        if ordinal.isdigit() and line.startswith(b"<sitemap>") and line.endswith(b"</sitemap>\n")
    }
