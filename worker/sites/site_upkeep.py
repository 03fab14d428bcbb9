"""Upkeep of the sites of one worker by the clock: files are compared with the state, tombstones
purged, nearly empty shards emptied, and the expiry of news checked.
"""

from __future__ import annotations

from collections.abc import Callable

from shared.task_names import REFRESH_S, SWEEP_S, TIDY_S
from shared.telemetry.logs import logger
from worker.loops.loop import Loop
from worker.publishing.upkeep.news_refresh import refresh
from worker.sites.site_work import WorkedSites

CHECK_S = 0.2
"""Seconds of one look at files; the next one goes on where it ended."""

_log = logger("worker")


class SiteUpkeep:
    """Upkeep of the present `sites`. While `quiet` returns True nothing is done."""

    def __init__(
        self, sites: WorkedSites, quiet: Callable[[], bool], now_ms: Callable[[], int]
    ) -> None:
        """Prepare the upkeep; `now_ms` gives milliseconds since 1970."""
        self._sites, self._quiet, self._now_ms = sites, quiet, now_ms
        self._monitoring, self._tidying = Loop("monitor"), Loop("tidy")
        self._refreshing = Loop("refresh")
        self.loops = [self._monitoring, self._tidying, self._refreshing]
        self._checked = 0

    def start(self) -> None:
        """Start the loops."""
        self._monitoring.start(self.check, SWEEP_S)
        self._tidying.start(self.tidy, TIDY_S, first_s=TIDY_S)
        self._refreshing.start(self.refresh, REFRESH_S, first_s=REFRESH_S)

    def check(self) -> None:
        """Compare web roots and files with the state, a few at a time, where it is due."""
        if not self._quiet():
            self._checked = self._sites.check(self._monitoring, self._checked, CHECK_S)

    def tidy(self) -> None:
        """Purge expired tombstones, and empty one nearly empty shard of each site."""
        for name, work in self._sites.present.items() if not self._quiet() else ():
            if self._tidying.due(name):
                with self._tidying.at(name):
                    work.tidy(self._tidying, self._now_ms)

    def refresh(self) -> None:
        """Check the expiry time of every news entry."""
        for name, work in self._sites.present.items() if not self._quiet() else ():
            if self._refreshing.due(name):
                with self._refreshing.at(name):
                    consumer, progress = work.consumer, self._refreshing.progress
                    seen = refresh(consumer.pages, work.state, consumer.expiry.schedule, progress)
                    if seen:
                        _log.info("news checked", site=name, entries=seen, left=consumer.expire())
