"""A publisher's work: what it takes up, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shared.blocks import Block
from shared.shards import Shard, ShardState
from shared.store.contract import PublishedFile


class Taken(NamedTuple):
    """One shard as a publisher takes it up.

    `patches` maps block number -> key -> new fragment (None: remove); `blocks` is what is merged
    so far; `file` is what is on disk, None if nothing is. `moved` of its pages are listed by other
    files now, and an administrator has `confirmed` that it may shrink to that many (T32).
    """

    shard: Shard
    state: ShardState
    patches: Mapping[int, Mapping[bytes, bytes | None]]
    blocks: Mapping[int, Block]
    file: PublishedFile | None
    moved: int = 0
    confirmed: int | None = None


class Done(NamedTuple):
    """One shard as it was published: `blocks` changed (None: gone), `file` None if it has none.

    `taken` is what that was made of. `held` if it stays as it was published before: the pages it
    would list, and those it is measured against (T32); the patches wait on, out of the way.
    """

    taken: Taken
    blocks: Mapping[int, Block | None]
    file: PublishedFile | None
    page: int
    line: bytes
    held: tuple[int, int] | None = None

    @property
    def shard(self) -> Shard:
        """Which shard."""
        return self.taken.shard

    @property
    def state(self) -> ShardState:
        """The shard's state when it was taken up."""
        return self.taken.state


class Run(NamedTuple):
    """Which life of the state this is and how often it was published: the run marker (F22)."""

    ident: str
    publishes: int


class Begun(NamedTuple):
    """What a publisher may take up: its `shards` and their `states`, and whose state that is."""

    run: Run
    shards: list[Shard]
    states: list[ShardState]
