"""The wall clock in milliseconds since 1970; durations: their percentiles, and in words."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence


def now_ms() -> int:
    """Milliseconds since 1970, by the clock of this machine."""
    return time.time_ns() // 1_000_000


def percentile(ordered: Sequence[int], share: float) -> int:
    """The least of `ordered` (not empty) that `share` of all do not exceed: nearest rank."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


_STEPS = (
    (60, 1, "s"), (3_600, 60, "min"), (48 * 3_600, 3_600, "h"), (90 * 86_400, 86_400, "days"),
)  # fmt: skip


def span(seconds: float) -> str:
    """Return a duration in its largest unit."""
    fitting = (step for step in _STEPS if seconds < step[0])
    _, unit, name = next(fitting, _STEPS[-1])
    return f"{int(seconds // unit):,} {name}"
