"""The wall clock in milliseconds since 1970, and durations in words."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since 1970, by the clock of this machine."""
    return time.time_ns() // 1_000_000


_STEPS = (
    (60, 1, "s"), (3_600, 60, "min"), (48 * 3_600, 3_600, "h"), (90 * 86_400, 86_400, "days"),
)  # fmt: skip


def span(seconds: float) -> str:
    """Return a duration in its largest unit."""
    fitting = (step for step in _STEPS if seconds < step[0])
    _, unit, name = next(fitting, _STEPS[-1])
    return f"{int(seconds // unit):,} {name}"
