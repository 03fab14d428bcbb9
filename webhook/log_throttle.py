"""Throttle the log lines of refusals: a flood of unsigned requests must not fill the disk (F29).

The first SINGLY refusals of each kind within WINDOW_S get a line of their own, the others one line
together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

WINDOW_S = 10.0
SINGLY = 10
"""Lines of one kind within WINDOW_S (seconds) that are logged one by one."""
MOST_KINDS = 256
_REST = "other"


class LogThrottle:
    """Counts refusals by kind. `report` gets a kind and the number of further refusals of it."""

    def __init__(
        self, report: Callable[[Hashable, int], None], window_s: float = WINDOW_S
    ) -> None:  # fmt: skip
        self._report, self._window_s = report, window_s
        self._lock = threading.Lock()
        self._counts: dict[Hashable, int] = {}
        self._until = 0.0

    def singly(self, kind: Hashable) -> bool:
        """Return True if one more refusal of `kind` gets a line of its own; raises nothing, never
        waits.
        """
        with self._lock:
            counts = self._due()
            if kind not in self._counts and len(self._counts) >= MOST_KINDS:
                kind = _REST
            self._counts[kind] = count = self._counts.get(kind, 0) + 1
            if count == SINGLY + 1:
                # The count is reported even if no further refusal comes; a daemon timer does not
                # delay the exit.
                timer = threading.Timer(max(0.0, self._until - time.monotonic()) + 0.01, self.flush)
                timer.daemon = True
                timer.start()
        self._report_all(counts)
        return count <= SINGLY

    def flush(self) -> None:
        """Report the counts if the window is over."""
        with self._lock:
            counts = self._due()
        self._report_all(counts)

    def _due(self) -> dict[Hashable, int]:
        now = time.monotonic()
        if now < self._until:
            return {}
        counts, self._counts, self._until = self._counts, {}, now + self._window_s
        return counts

    def _report_all(self, counts: dict[Hashable, int]) -> None:
        for kind, count in counts.items():
            if count > SINGLY:
                self._report(kind, count - SINGLY)
