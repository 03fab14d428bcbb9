"""One publish pass: what it works on, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shared.sitemap.shards import Shard
from shared.store.publishing.publish_work import PublishBatch
from worker.publishing.targets.target import StagedFile, Target


class PublishResult(NamedTuple):
    """Outcome of one publish pass: shards brought up to date, files written and removed.

    `held` are the shards of a shrink hold, `damaged` those not written, with the reason. `dated` is
    the latest mtime written, in seconds since 1970 or 0; with `full` more shards may be as dirty.
    """

    shards: list[Shard]
    written: list[str]
    removed: list[str]
    held: Sequence[Shard] = ()
    damaged: Mapping[Shard, str] = {}
    dated: int = 0
    full: bool = False


class PublishPass(NamedTuple):
    """One publish pass: current index lines, staged files; `again`: see Publisher.publish."""

    root: Target
    begun: PublishBatch
    lines: Mapping[int, Mapping[int, bytes]]
    again: bool
    shards: dict[Shard, StagedFile]
    indexes: list[StagedFile]
    feeds: list[StagedFile]
