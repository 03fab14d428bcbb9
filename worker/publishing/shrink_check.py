"""The shrink guard at work: what a pass may publish, and the alarm about what it may not (T32)."""

from __future__ import annotations

import time
from collections.abc import Iterable

from shared.config.site import Site
from shared.domain.shrink_guard import Peak
from shared.logs import logger
from shared.sitemap.shards import Shard
from worker.publishing.shard_merge import MergedShard, unpatched

ALARM_S = 300.0
"""How long the alarm about one hold is not repeated."""

_log = logger("publisher")


class ShrinkCheck:
    """Judges what one site is about to publish."""

    def __init__(self, name: str, site: Site) -> None:
        self._name, self._rule = name, site.shrink
        self._told: dict[Shard, tuple[int | None, float]] = {}

    def judge(self, merged: MergedShard) -> MergedShard:
        """`merged`, or the shard as it was published before if too much would go; `held` then."""
        taken, file = merged.taken, merged.taken.file
        before = (file.urls, Peak(file.peak, file.peak_since)) if file else (0, Peak(0, 0))
        verdict = self._rule.judge(
            *before, merged.urls, int(time.time()), moved=taken.moved, confirmed=taken.confirmed
        )
        if not verdict.holds:
            return merged._replace(peak=verdict.peak)
        return unpatched(taken)._replace(held=(merged.urls, verdict.reference))

    def tell(self, judged: Iterable[MergedShard]) -> None:
        """Raise the alarm for what is held, once for each hold and now and then after that."""
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
                "held by the shrink guard: the old files stay", site=self._name, shards=new,
                remedy=f"if that is meant: sitemapd confirm --site {self._name}; "
                "if not: send the pages again",
            )  # fmt: skip
