"""Signs of many sites, read together: what shared/admin/attention.py judges."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.admin.site_status import status_of
from shared.clock import span
from shared.config.sites.site import Site
from shared.store.counting.counters import AcceptedHours
from shared.store.notify.notification_queue import EngineState
from shared.store.operations.checks import CheckReport, ComparisonSummary
from shared.store.operations.loop_health import LoopHealth, of_sites
from shared.store.operations.recent_refusals import RecentRefusals
from shared.store.operations.site_snapshot import SiteSnapshot, SnapshotReader
from shared.store.readback.counts_reading import counts_reading
from shared.store.readback.page_chains import PageCounts
from shared.store.round_trips import Reading, gathered, read


class LatePages(NamedTuple):
    """Number of pages that an engine did not know so many `hours` after their publish."""

    engine: str
    pages: int
    hours: float

    @property
    def said(self) -> str:
        """The same as a sentence."""
        pages = f"{self.pages:,} {'page' if self.pages == 1 else 'pages'}"
        late = span(self.hours * 3600)
        return f"{self.engine.capitalize()} does not know {pages} {late} after their publish."


class SiteSigns(NamedTuple):
    """All signs of one site at `now_s` (s since 1970): its `status` (Inspector.status), refused
    deliveries, accepted events by the hour, the engines it notifies, the last check, the last
    comparison with its source and when that began (ms; 0: never), and the engines that do not know
    too many pages. `sourced`: it has a source. `alarms` are those of the looks at its pages, each
    in a sentence.
    """

    site: str
    now_s: float
    status: dict[str, Any]
    sourced: bool = False
    refused: RecentRefusals = RecentRefusals()
    accepted: AcceptedHours = AcceptedHours((), 0)
    engines: Sequence[EngineState] = ()
    report: CheckReport | None = None
    compared: ComparisonSummary | None = None
    reconciled_ms: int = 0
    alarms: Sequence[str] = ()
    late: Sequence[LatePages] = ()


class SignReader:
    """Reader of the signs of these sites, by name."""

    def __init__(self, client: redis.Redis, sites: Mapping[str, Site]) -> None:
        self._client, self._sites = client, sites
        self._reading = {n: site.readback for n, site in sites.items() if site.readback.engines}
        engines = {name: tuple(site.notify.engines) for name, site in sites.items()}
        self._snapshots = SnapshotReader(engines, "signs")
        self._statuses: dict[str, tuple[SiteSnapshot, dict[str, Any]]] = {}

    def read(self, names: Sequence[str] | None = None) -> list[SiteSigns]:
        """Return the signs of the sites `names` (None: all), in as many round trips as those of
        one. Raises StoreError.
        """
        names = list(self._sites) if names is None else names
        now_s = time.time()
        parts: list[Reading[Any]] = [
            LoopHealth(self._client).reports_reading(), self._snapshots.reading(names, now_s)
        ]  # fmt: skip
        if reading := {name: self._reading[name] for name in names if name in self._reading}:
            parts.append(counts_reading(reading, int(now_s * 1000)))
        reports, snapshots, *counts = read(self._client, gathered(parts))
        found = [
            self._signs(name, snapshot, now_s)
            for name, snapshot in zip(names, snapshots, strict=True)
        ]
        if counts:
            found = [each._replace(late=self._late(each.site, counts[0])) for each in found]
        of_sites(reports, [each.status for each in found])
        return found

    def _signs(self, name: str, snapshot: SiteSnapshot, now_s: float) -> SiteSigns:
        sourced, compared = bool(self._sites[name].source), snapshot.compared
        last_ms = max(snapshot.reconciled_ms if sourced else 0, compared.at_ms if compared else 0)
        return SiteSigns(
            name, now_s, self._status(name, snapshot), sourced, snapshot.refused, snapshot.hours,
            snapshot.engines, snapshot.report, compared, last_ms, self._alarms(name, snapshot),
        )  # fmt: skip

    def _late(self, name: str, counts: Mapping[str, Mapping[str, PageCounts]]) -> list[LatePages]:
        config = self._sites[name].readback
        return [
            LatePages(engine, count.late, config.unknown_hours)
            for engine, count in counts.get(name, {}).items() if count.late >= config.unknown_pages
        ]  # fmt: skip

    def _alarms(self, name: str, snapshot: SiteSnapshot) -> Sequence[str]:
        settings = self._sites[name].pages
        return snapshot.looks.alarms(settings) if snapshot.looks and settings else ()

    def _status(self, name: str, snapshot: SiteSnapshot) -> dict[str, Any]:
        known = self._statuses.get(name)
        if known is None or known[0] is not snapshot:
            known = self._statuses[name] = snapshot, status_of(name, self._sites[name], snapshot)
        return {**known[1]}


def drifts(status: Mapping[str, Any]) -> bool:
    """Return True if the files list other pages than the state although no work waits."""
    at_work = status["waiting_events"] or status["dirty_files"] or status["held"]
    return not at_work and bool(status["urls"] != status["published_urls"])
