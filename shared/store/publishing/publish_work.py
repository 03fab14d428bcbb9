"""Work of a publish pass: as taken from the store, damaged or not, and as committed to it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from shared.errors import ShardError
from shared.sitemap.blocks import Block
from shared.sitemap.shards import Shard, ShardState

if TYPE_CHECKING:
    from shared.store.publishing.publish_batch import PublishedFile

DAMAGED = (ValueError, TypeError, IndexError, OverflowError, struct.error)
"""Errors raised when a record is read that was not written in that form (RELIABILITY T35)."""

Change = tuple[bytes | None, bytes | None]
"""A fragment before and after a publish; None where it is not listed."""


class ShardWork(NamedTuple):
    """One shard as taken by a publisher.

    `patches` maps block number -> key -> new fragment (None: remove); `blocks` is the merged
    content; `file` is the file on disk, None if there is none. `moved` of its pages are listed by
    other files now, and an administrator has `confirmed` that it may shrink to that many (T32).
    `to_notify` are the pages whose change engines are to be notified of.
    """

    shard: Shard
    state: ShardState
    patches: Mapping[int, Mapping[bytes, bytes | None]]
    blocks: Mapping[int, Block]
    file: PublishedFile | None
    moved: int = 0
    confirmed: int | None = None
    to_notify: Sequence[str] = ()


class PublishedShard(NamedTuple):
    """One published shard: `blocks` that changed (None: gone), `file` (None: it has none).

    `page` is the index file that lists it, with this `line`. `lines` are the changed lines of the
    file as packed for revisions.py (empty: too many to keep), `changed` is their number. `taken` is
    the work it was made from.
    `held` for a shrink hold, which keeps the published file: the number of pages it would list, and
    the reference number (T32); the patches stay pending. `raw` are the fragments of
    those blocks that were inflated.
    """

    taken: ShardWork
    blocks: Mapping[int, Block | None]
    file: PublishedFile | None
    page: int
    line: bytes
    held: tuple[int, int] | None = None
    changed: int = 0
    lines: bytes = b""
    raw: Mapping[int, bytes | memoryview] = {}


class PublishRun(NamedTuple):
    """Run marker: identity of the state, and its number of publishes (F22). `history` is that of
    the master which has them, where a replica may become the master (replica_wait.py).
    """

    ident: str
    publishes: int
    history: str = ""


class Commit(NamedTuple):
    """Outcome of a commit: the number of publishes so far, 0 if the lease was lost. Where a replica
    may become the master, whether enough of them confirmed it, and the history of the master.
    """

    publishes: int
    confirmed: bool = True
    history: str = ""


class PublishBatch(NamedTuple):
    """Shards that a publisher has taken, the `lines` of the index files that list them by ordinal,
    and the run marker of the state.

    `damaged` maps shards whose records cannot be read to the error. `full` is True if other shards
    may be as dirty: the pass has as many shards or bytes as one may have.
    """

    run: PublishRun
    taken: list[ShardWork]
    lines: dict[int, dict[int, bytes]]
    damaged: dict[Shard, ShardError]
    full: bool = False


def fragment_of(patch: bytes) -> bytes | None:
    """Return the fragment that a stored patch lists; None if it removes a page."""
    return patch[3:] if patch[2:3] in {b"U", b"u"} else None


def damage(shard: Shard, error: Exception) -> ShardError:
    """Return the error for a shard with damaged records."""
    return ShardError(f"the records of {shard} in Redis are damaged: {error}")


def index_lines(stored: Iterable[tuple[bytes, bytes]]) -> dict[int, bytes]:
    """Return index lines by ordinal, without fields that no publish has written."""
    return {
        int(ordinal): line
        for ordinal, line in stored
        if ordinal.isdigit() and line.startswith(b"<sitemap>") and line.endswith(b"</sitemap>\n")
    }
