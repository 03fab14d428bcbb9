"""Log refusals that come in masses once: unsigned requests must not fill the disk (F29).

Of each kind the first few within some seconds have a line of their own, the others one together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

WINDOW_S = 10.0
SINGLY = 10
"""Lines of one kind in WINDOW_S that are written one by one."""
MOST_KINDS = 256
_REST = "other"


class LogThrottle:
    """Counts what is refused, by kind. `tell` gets a kind and how many more there were."""

    def __init__(
        self, tell: Callable[[Hashable, int], None], window_s: float = WINDOW_S
    ) -> None:  # fmt: skip
        self._tell, self._window_s = tell, window_s
        self._lock = threading.Lock()
        self._counts: dict[Hashable, int] = {}
        self._until = 0.0

    def singly(self, kind: Hashable) -> bool:
        """Whether one more of `kind` has a line of its own; raises nothing, waits for nothing."""
        with self._lock:
            told = self._due()
            if kind not in self._counts and len(self._counts) >= MOST_KINDS:
                kind = _REST
            self._counts[kind] = count = self._counts.get(kind, 0) + 1
            if count == SINGLY + 1:
                # Told in the end although nothing more comes; a daemon: it holds up no process.
                timer = threading.Timer(max(0.0, self._until - time.monotonic()) + 0.01, self.flush)
                timer.daemon = True
                timer.start()
        self._say(told)
        return count <= SINGLY

    def flush(self) -> None:
        """Tell what was counted, if its time is over."""
        with self._lock:
            told = self._due()
        self._say(told)

    def _due(self) -> dict[Hashable, int]:
        now = time.monotonic()
        if now < self._until:
            return {}
        told, self._counts, self._until = self._counts, {}, now + self._window_s
        return told

    def _say(self, told: dict[Hashable, int]) -> None:
        for kind, count in told.items():
            if count > SINGLY:
                self._tell(kind, count - SINGLY)
