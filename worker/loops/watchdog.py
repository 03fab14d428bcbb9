"""Watchdog of a worker: reports its loops that fail, hang or have ended."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import redis

from shared.errors import StoreError
from shared.store.operations.loop_health import LoopHealth, LoopReport
from shared.telemetry.logs import logger
from worker.loops.loop import Loop

WATCH_S = 5.0

_log = logger("loops")


class Watchdog:
    """Reports on the loops of the worker `name`, from a thread of its own."""

    def __init__(self, client: redis.Redis, name: str, loops: Sequence[Loop]) -> None:
        self._health, self._name, self._loops = LoopHealth(client), name, loops
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start reporting."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reporting."""
        self._stopping.set()

    def look(self) -> LoopReport:
        """Store and return a report on the loops that were started. Raises StoreError."""
        running = [loop for loop in self._loops if loop.started]
        succeeded = {loop.name: loop.succeeded for loop in running}
        found = [trouble for loop in running for trouble in loop.troubles()]
        report = LoopReport(succeeded=succeeded, troubles=tuple(found))
        self._health.report(self._name, report)
        return report

    def end(self) -> None:
        """Delete the last report, after `stop`. Raises StoreError."""
        self._thread.join(WATCH_S)
        self._health.forget(self._name)

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                self.look()
            except StoreError:
                pass  # the heartbeat reports it; this report is useless without Redis
            except Exception:  # noqa: BLE001  # last guard: a thread that ends is not restarted
                _log.exception("loops not reported")
            self._stopping.wait(WATCH_S)
