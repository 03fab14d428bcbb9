"""How tests wait for what other processes do: how long at most, and how often they look."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_S = 90.0
"""Seconds that are waited for what takes one or two on an idle machine. The end is for what never
comes: beside the other testers, and more on the same cores, a start took 25 s.
"""
BUSY = 2
"""So many times as long as a look took is waited before the next one: a command that is asked takes
half a second of a processor, which those lack who do what is waited for.
"""
LONGEST_S = 1.0


def holds_within(holds: Callable[[], object], seconds: float) -> bool:
    """Whether `holds` comes true within `seconds`."""
    begun = time.monotonic()
    while True:
        looked = time.monotonic()
        if holds():
            return True
        now = time.monotonic()
        if now - begun > seconds:
            return False
        time.sleep(pause(now - begun, now - looked))


def pause(waited: float, look: float) -> float:
    """Seconds until the next look, after so many of waiting, of which the last look took `look`.

    What lasts is looked at less often, 20 times a second.
    """
    return max(min(max(0.01, waited / 20), 0.05), min(BUSY * look, LONGEST_S))
