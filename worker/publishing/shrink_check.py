"""Shrink guard of a publish pass: hold shards that shrink too much, and raise the alarm (T32)."""

from __future__ import annotations

import time
from collections.abc import Iterable

from shared.config.site import Site
from shared.domain.shrink_guard import Peak
from shared.logs import logger
from shared.sitemap.shards import Shard
from worker.publishing.shard_merge import MergedShard, unpatched

ALARM_S = 300.0
"""Seconds for which the alarm about one shrink hold is not repeated."""

_log = logger("publisher")


class ShrinkCheck:
    """Judges the shards that one site is about to publish."""

    def __init__(self, name: str, site: Site) -> None:
        self._name, self._rule = name, site.shrink
        self._told: dict[Shard, tuple[int | None, float]] = {}

    def judge(self, merged: MergedShard) -> MergedShard:
        """Return `merged`, or if it shrinks too much, the shard as last published, with `held`
        set.
        """
        taken, file = merged.taken, merged.taken.file
        before = (file.urls, Peak(file.peak, file.peak_since)) if file else (0, Peak(0, 0))
        verdict = self._rule.judge(
            *before, merged.urls, int(time.time()), moved=taken.moved, confirmed=taken.confirmed
        )
        if not verdict.holds:
            return merged._replace(peak=verdict.peak)
        return unpatched(taken)._replace(held=(merged.urls, verdict.reference))

    def tell(self, judged: Iterable[MergedShard]) -> None:
        """Log the alarm for shards on hold: once for each hold, then every ALARM_S seconds."""
        now, new = time.monotonic(), {}
        for each in judged:
            shard, confirmed = each.taken.shard, each.taken.confirmed
            if each.held is None:
                self._told.pop(shard, None)
                continue
            before, at = self._told.get(shard, (None, -ALARM_S))
            if now - at >= ALARM_S or before != confirmed:
                self._told[shard] = (confirmed, now)
                new[str(shard)] = f"{each.held[1]} -> {each.held[0]} pages"
        if new:
            _log.error(
                "shrink guard holds files", site=self._name, shards=new,
                remedy=f"if that is meant: sitemapd confirm --site {self._name}; "
                "if not: send the pages again",
            )  # fmt: skip
