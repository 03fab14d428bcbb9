"""Background checks of a worker: requested ones, and one every `checks_hours`.

A check runs in a thread of its own, in steps of a millisecond. After each it sleeps as long as the
step took, and while another thread applies events or publishes, it waits up to BUSY_S. So a publish
pass never waits for a check, and under full load a check still makes progress.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import redis

from shared.clock import now_ms
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.errors import CheckError
from shared.store.operations.checks import ERROR, CheckBusyError, CheckStore
from shared.store.operations.site_work import checks_begun, with_checks_asked
from shared.telemetry.logs import logger
from worker.checks.examination import Examination
from worker.loops.companions import Companion
from worker.loops.loop import Loop

PERIODIC_S = 600.0
"""Seconds after the start of a worker at which its periodic checks begin."""

FAILED_S = 300.0
"""Seconds for which a site is not checked after a failed check."""

BUSY_S = 0.02
_SHORTEST_S = 0.0005

_log = logger("check")


class _StoppedError(CheckError):
    """The worker stops: the check is aborted, and the next worker starts it again."""


class Examiner(Companion):
    """Checks of the configured sites, run by the worker `owner`."""

    POLL_S = FIRST_S = 2.0

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str, busy: Callable[[], bool],
        *, first_s: float = PERIODIC_S,
    ) -> None:  # fmt: skip
        """Prepare the checks; `busy` returns True while this process applies events or
        publishes.
        """
        super().__init__(Loop("checks", first_s=FAILED_S, longest_s=12 * FAILED_S))
        self._client, self._owner, self._busy = client, owner, busy
        self.prepare(settings)()
        self._by_the_clock = time.monotonic() + first_s
        self._worked_since = time.perf_counter()

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Return the function that puts `settings` in force; a running check ends by the old."""
        checks = {name: CheckStore(self._client, name) for name in settings.sites}

        def put_in_force() -> None:
            self._checks, self._sites, self._settings = checks, settings.sites, settings
            self._every_ms = settings.checks_hours * 3_600_000
            self._due_ms = dict[str, int]()

        return put_in_force

    def look(self) -> None:
        """Run the checks of every site that are requested or due."""
        sites = self._sites
        wanted = with_checks_asked(self._client, sites) | self._due() | self.loop.failing
        for name in [name for name in sites if name in wanted]:
            site = sites[name]
            if self.loop.stopping:
                return
            if self.loop.due(name) and name in self._sites:
                with self.loop.at(name), suppress(CheckBusyError, _StoppedError):
                    if self._wanted(name):
                        self._check(name, site)

    def _wanted(self, name: str) -> bool:
        """Return True if a check is requested or due."""
        checks = self._checks.get(name)
        if checks is None or checks.asked():
            return checks is not None
        return self._by_clock() and now_ms() - checks.last_ms() >= self._every_ms

    def _by_clock(self) -> bool:
        """True if checks that nobody requested may be due."""
        return bool(self._every_ms) and time.monotonic() >= self._by_the_clock

    def _due(self) -> set[str]:
        """Return the sites of which a check may be due; each is asked for when it may be first."""
        if not self._by_clock():
            return set()
        now = now_ms()
        late = [name for name in self._sites if now >= self._due_ms.get(name, 0)]
        begun = checks_begun(self._client, late)
        self._due_ms |= {name: int(at + self._every_ms) for name, at in begun.items()}
        return {name for name in late if now >= self._due_ms[name]}

    def _check(self, name: str, site: Site) -> None:
        self._worked_since = time.perf_counter()
        elsewhere = self._settings.inner(name) if name in self._settings.sites else ()
        report = Examination(
            self._client, name, site, self._owner, self._breathe, elsewhere=elsewhere
        ).run()
        wrong = {each.check: each.found for each in report.findings if each.severity == ERROR}
        say = _log.warning if wrong else _log.info
        took = (report.ended_ms - report.began_ms) / 1000
        say("checked", site=name, by=report.by, pages=report.pages, seconds=took, wrong=wrong)

    def _breathe(self) -> None:
        """Yield to other threads for as long as the last step took; longer while they are busy."""
        took = time.perf_counter() - self._worked_since
        time.sleep(max(_SHORTEST_S, min(took, BUSY_S)))
        until = time.perf_counter() + BUSY_S
        while self._busy() and time.perf_counter() < until:
            time.sleep(_SHORTEST_S * 4)
        if self.loop.stopping:
            raise _StoppedError("the worker stops: the check was aborted")
        self.loop.progress()
        self._worked_since = time.perf_counter()
