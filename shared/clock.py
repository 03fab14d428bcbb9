"""The wall clock in milliseconds since 1970."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since 1970, by the clock of this machine."""
    return time.time_ns() // 1_000_000
