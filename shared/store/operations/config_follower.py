"""Follow the configuration file in one process: look, apply, log, report."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import redis

from shared.config.live import LiveSettings
from shared.config.settings import Settings
from shared.errors import Fault, SitemapdError, StoreError
from shared.store.operations.config_reports import RENEW_S, ConfigReport, ConfigReports
from shared.telemetry.logs import logger

LOOK_S = 0.5
"""Seconds between two looks at the file: one system call each."""

_log = logger("configuration")


class ConfigFollower:
    """Puts a changed configuration in force by `apply`, in one process of the name `process`.

    `apply` must change nothing if it raises, and must be quick to return.
    """

    def __init__(
        self, live: LiveSettings, client: redis.Redis, process: str,
        apply: Callable[[Settings], None] = lambda _settings: None,
    ) -> None:  # fmt: skip
        self.live, self._reports, self._process = live, ConfigReports(client), process
        self._apply, self._due = apply, 0.0

    def ask(self) -> None:
        """Read the file at the next look, changed or not; for signal handlers: takes no lock."""
        self.live.ask()

    def look(self) -> None:
        """Look at the file once, and report. Raises StoreError if Redis does not answer."""
        try:
            news = self.live.look(self._apply)
        except Exception as error:  # noqa: BLE001  # whatever fails: the old settings stay in force
            said = str(error) if isinstance(error, SitemapdError) else type(error).__name__
            news = self.live.refuse(Fault("configuration", "apply", f"not applied: {said}"))
            if news:
                _log.exception("configuration not applied", reason=said)
        if news:
            self._tell()
        if news or time.monotonic() >= self._due:
            self._due = time.monotonic() + RENEW_S
            self._reports.report(self._process, self._report())

    def start(self) -> None:
        """Follow in a thread of its own, for processes without supervised loops."""
        threading.Thread(target=self._run, name="configuration", daemon=True).start()

    def end(self) -> None:
        """Withdraw the report of this process."""
        with suppress(StoreError):
            self._reports.forget(self._process)

    def _run(self) -> None:
        with suppress(StoreError):
            self._reports.forget_ended()
        while True:
            time.sleep(LOOK_S)
            # Redis tells nothing that the next report does not; the file was read before.
            with suppress(StoreError):
                self.look()

    def _tell(self) -> None:
        live = self.live
        if live.refused is None:
            _log.info(
                "configuration in force", revision=live.revision,
                sites=len(live.current.sites), next_start=list(live.next_start),
            )  # fmt: skip
        else:
            faults = [str(fault) for fault in live.refused.faults]
            _log.error("configuration refused", reason="; ".join(faults), in_force=live.revision)

    def _report(self) -> ConfigReport:
        live, refused = self.live, self.live.refused
        return ConfigReport(
            at=time.time(), revision=live.revision, next_start=live.next_start,
            refused=tuple(map(str, refused.faults)) if refused else (),
            since=refused.since if refused else 0.0,
        )  # fmt: skip
