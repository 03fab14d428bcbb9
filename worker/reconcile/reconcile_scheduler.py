"""Scheduler of reconcile runs: resync requests, and the configured interval.

It runs in a thread of its own, one site after the other: a source may take hours to read, and no
wake-up waits for it. It also polls, for messages may be lost and the schedule may be down.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import redis

from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.errors import ReconcileError, SourceError
from shared.events.resync_scope import WHOLE, Scope
from shared.store.operations.resync_requests import ReconcileBusyError, ResyncRequests
from shared.store.operations.site_work import with_resyncs
from shared.telemetry.logs import logger
from worker.http.exchange import SOURCE
from worker.loops.companions import Companion
from worker.loops.loop import Loop
from worker.reconcile.reconciler import Reconciler, Repairs
from worker.reconcile.source_polls import SourcePolls
from worker.sources import SourceOptions, public, read

PAUSE_S = 60.0
UNREAD_S = 900.0
REFUSED_S = 3600.0
"""Seconds for which a site's source is not read again: after a run (PAUSE_S), after one that it
broke off (UNREAD_S), and after one that an administrator must attend to (REFUSED_S).
"""

SLOW_S = SOURCE.seconds + 30.0
"""Seconds that one document of a slow source may take without progress."""

BUSY_S = 0.05

_log = logger("reconcile")


class _StoppedError(Exception):
    """The worker stops, or the site was removed: the run is aborted, and the lock released."""


class ReconcileScheduler(Companion):
    """Reconciles the sites of one worker, as `owner` of the reconcile lock."""

    POLL_S = 60.0

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str, wake: Callable[[str], None],
        quiet: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """Create a scheduler; `wake` applies the events of a site.

        While `quiet` returns True no run is started.
        """
        rests = {SourceError: UNREAD_S, ReconcileError: REFUSED_S}
        super().__init__(
            Loop("reconcile", first_s=UNREAD_S, longest_s=UNREAD_S, hang_s=SLOW_S, rests=rests)
        )
        self._quiet = quiet
        self._client, self._owner, self._wake = client, owner, wake
        self._not_before: dict[str, float] = {}
        self._polls = SourcePolls()
        self.prepare(settings)()

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Return the function that puts `settings` in force; a run ends by the old, and that of a
        removed site is aborted.
        """
        resyncs = {name: ResyncRequests(self._client, name) for name in settings.sites}

        def put_in_force() -> None:
            self._resyncs, self._sites = resyncs, settings.sites

        return put_in_force

    def look(self) -> None:
        """Carry out the open and due reconciles of every site."""
        sites = self._sites
        wanted = with_resyncs(self._client, sites) | self.loop.failing
        wanted |= {name for name, site in sites.items() if site.reconcile_hours}
        for name in [name for name in sites if name in wanted]:
            site = sites[name]
            if self.loop.stopping:
                return
            if not self._quiet() and self.loop.due(name) and name in self._sites:
                with self.loop.at(name), suppress(ReconcileBusyError, _StoppedError):
                    self._look_at(name, site)

    def _look_at(self, name: str, site: Site) -> None:
        resyncs = self._resyncs.get(name)
        if resyncs is None:
            return
        if strange := resyncs.forget_strange():
            _log.error("invalid resync scopes dropped", site=name, scopes=strange)
        scopes = list(resyncs.open())
        if not site.source.get_secret_value():
            if scopes and resyncs.first_this_hour():
                _log.error(
                    "resync requested without a source", site=name,
                    scopes=[*map(str, scopes)], run="sitemapd reconcile --against SOURCE",
                )  # fmt: skip
            return
        due = site.reconcile_hours and (
            resyncs.begin_ms() - resyncs.last_ms() >= site.reconcile_hours * 3_600_000
        )
        if due and not scopes and self._polls.unchanged(name, site, resyncs):
            _log.debug("source unchanged", site=name)
            return
        if due:
            scopes = [WHOLE]
        if scopes and time.monotonic() >= self._not_before.get(name, 0.0):
            self._reconcile(name, site, scopes[0] if len(scopes) == 1 else WHOLE)

    def _reconcile(self, name: str, site: Site, scope: Scope) -> None:
        """Run once for all open requests: any scope requires reading the whole source."""
        source = site.source.get_secret_value()
        reconciler = Reconciler(self._client, name, site, self._owner)
        key, query = site.source_key.get_secret_value(), site.source_query
        access = SourceOptions.of(site, key, query, lambda s: self._rest(name, s))
        items = read(source, access)
        _log.info("reconcile", site=name, scope=str(scope), source=public(source))
        try:
            done = reconciler.run(
                items, scope, on_remark=lambda _: None, drain=lambda: self._drain(name),
                seen=lambda _: self._go_on(name),
            )  # fmt: skip
        finally:
            self._wake(name)
        self._tell(name, scope, done)
        if scope.whole:
            self._polls.read(name, site, self._resyncs[name], access.validators)

    def _tell(self, name: str, scope: Scope, done: Repairs) -> None:
        if not done.complete:
            figures = ", ".join(f"{what} {count}" for what, count in done.figures().items())
            raise ReconcileError(f"not reconciled to the end: {scope}: {figures}")
        self._not_before[name] = time.monotonic() + PAUSE_S
        _log.info("reconciled", site=name, scope=str(scope), **done.figures())

    def _drain(self, name: str) -> None:
        self._go_on(name)
        self._wake(name)
        self.loop.wait(BUSY_S)

    def _rest(self, name: str, seconds: float) -> None:
        """Wait because the source asks for it."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._go_on(name)
            self.loop.wait(min(left, 1.0))

    def _go_on(self, name: str) -> None:
        if self.loop.stopping or name not in self._sites:
            raise _StoppedError
        self.loop.progress()
