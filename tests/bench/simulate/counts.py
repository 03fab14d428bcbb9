"""What each step sends to Redis and has it write: counted, not timed, so the same on any machine.

`tests/integration/worker/test_simulated_counts.py` counts them again.
"""

from __future__ import annotations

from typing import NamedTuple


class Count(NamedTuple):
    """Commands that Redis runs for a step, those in scripts too; bytes of its log, and bytes to and
    from it. `each` is what one event more adds.
    """

    commands: float
    log: float
    network: float

    def plus(self, each: Count, times: float) -> Count:
        """Return this with `each` so many `times`."""
        return Count(*(one + more * times for one, more in zip(self, each, strict=True)))


DELIVERY, DELIVERY_EVENT = Count(10, 545, 400), Count(1, 231, 167)
READ, READ_EVENT = Count(1, 135, 200), Count(0, 204, 208)
APPLY, APPLY_EVENT = Count(23, 720, 900), Count(3, 383, 344)
PASS, PASS_SHARD = Count(25, 2_000, 2_500), Count(34, 450, 500)
REST = Count(3, 100, 150)
WAKE = Count(4, 900, 2_500)
"""A message of Celery: sent, taken, acknowledged. Not counted by the test: Celery's own affair."""

SEEN_BYTES, SEEN_S = 148, 7 * 24 * 3600
"""Memory of Redis for the id of one delivery, and how long it is kept."""
EVENT_WAITING_BYTES = 240
"""Memory of Redis for one event in the inbox."""
POST_BYTES = 700
"""One delivery and its answer between sender and nginx, besides its events."""
BLOCK_URLS = 500
