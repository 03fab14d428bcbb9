"""Alarm of the shrink guard: files that would lose too many pages at once are held (T32)."""

from __future__ import annotations

import time
from collections.abc import Iterable

from shared.sitemap.shards import Shard
from shared.telemetry.logs import logger
from worker.publishing.shard_file import MergedShard

ALARM_S = 300.0
"""Seconds for which the alarm about one shrink hold is not repeated."""

_log = logger("publisher")


class ShrinkAlarm:
    """Alarm of one site; `raised` are its shrink holds, with the confirmed number and the time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.raised: dict[Shard, tuple[int | None, float]] = {}

    def tell(self, judged: Iterable[MergedShard]) -> None:
        """Log the alarm for shards on hold: once for each hold, then every ALARM_S seconds."""
        now, new = time.monotonic(), {}
        for each in judged:
            shard, confirmed = each.taken.shard, each.taken.confirmed
            if each.held is None:
                self.raised.pop(shard, None)
                continue
            before, at = self.raised.get(shard, (None, -ALARM_S))
            if now - at >= ALARM_S or before != confirmed:
                self.raised[shard] = (confirmed, now)
                new[str(shard)] = f"{each.held[1]} -> {each.held[0]} pages"
        if new:
            _log.error(
                "shrink guard holds files", site=self._name, shards=new,
                remedy=f"if that is meant: sitemapd confirm --site {self._name}; "
                "if not: send the pages again",
            )  # fmt: skip
