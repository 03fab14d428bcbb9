"""Quarantine of damaged shards: each is skipped, so that it stops no other, and retried."""

from __future__ import annotations

import contextlib
import errno
import time
from typing import NamedTuple

from shared.errors import (
    ForeignStateError,
    OvertakenError,
    PublishError,
    ShardError,
    StoreError,
    UnwritableError,
)
from shared.metrics.declarations import OTHER
from shared.sitemap.shards import Shard
from shared.store.counting.counter_buffer import CounterBuffer
from shared.store.publishing.publish_work import PublishBatch
from shared.store.publishing.quarantine import Quarantine
from shared.telemetry.logs import logger

FIRST_S, LONGEST_S = 1.0, 60.0
"""Seconds for which a shard is skipped after its first failure; doubled after each further one up
to LONGEST_S.
"""

_MEND_ROOT = "see that the web root can be written and has room; it is tried again"

_log = logger("publisher")


class _Failed(NamedTuple):
    reason: str
    until: float
    pause_s: float


class DamagedShards:
    """Shards of one site that this process could not write at the last attempt."""

    def __init__(self, quarantine: Quarantine, name: str, tally: CounterBuffer) -> None:
        self._quarantine, self._name, self._tally = quarantine, name, tally
        self.failed: dict[Shard, _Failed] = {}

    @property
    def reasons(self) -> dict[Shard, str]:
        """The shards set aside, with the reason."""
        return {shard: failed.reason for shard, failed in self.failed.items()}

    def reasons_of(self, begun: PublishBatch) -> dict[Shard, str]:
        """Return the shards of a batch that are set aside, with the reason."""
        taken = (*(each.shard for each in begun.taken), *begun.damaged)
        return {shard: self.failed[shard].reason for shard in taken if shard in self.failed}

    def skipped(self) -> list[Shard]:
        """Return the shards that are not due for another attempt."""
        now = time.monotonic()
        return [shard for shard, failed in self.failed.items() if failed.until > now]

    def add(self, shard: Shard, error: ShardError) -> None:
        """Set `shard` aside and record the reason for administrators. Raises StoreError."""
        before = self.failed.get(shard)
        pause_s = min(LONGEST_S, before.pause_s * 2) if before else FIRST_S
        self.failed[shard] = _Failed(str(error), time.monotonic() + pause_s, pause_s)
        self._tally.add(self._name, "held_back")
        todo = f"restore the Redis data, then run: sitemapd rebuild --site {self._name}"
        if isinstance(error, UnwritableError):
            todo = "take away what keeps this one file from being replaced; it is tried again"
        if self._quarantine.hold(shard, str(error), todo):
            _log.error(
                "shard held back", site=self._name, shard=str(shard), reason=str(error), remedy=todo
            )

    def drop(self, shard: Shard) -> None:
        """Remove `shard`: it can be written again."""
        self.failed.pop(shard, None)

    def stop(self, error: PublishError) -> None:
        """Record that nothing is published, unless `error` is momentary."""
        with contextlib.suppress(StoreError):  # the sweep tries again
            if not isinstance(error, OvertakenError):
                stop(self._quarantine, error)


def stop(quarantine: Quarantine, error: PublishError) -> bool:
    """Record that `error` stops all publishing; False if just that was already recorded.

    Raises StoreError.
    """
    if isinstance(error, ForeignStateError):
        return quarantine.stop("state", error.reason, error.todo)
    return quarantine.stop("disk", str(error), _MEND_ROOT)


def cause_of(error: PublishError) -> str:
    """Return the cause of a refusal: one of shared.metrics.declarations.CAUSES."""
    number = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
    if number in {errno.ENOSPC, errno.EDQUOT}:
        return "full"
    return "denied" if number in {errno.EACCES, errno.EPERM, errno.EROFS} else OTHER
