"""Counters of a site: totals, and counts per minute for the last day."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.store.client import answering
from shared.store.keys import Keys

BOUNDS_MS = (
    2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000,
    5_000, 10_000, 20_000, 60_000, 300_000, 3_600_000,
)  # fmt: skip
"""Upper bounds of the histogram classes of waits (ms); the last class has none."""

_WAITED = "waited:"


class WaitHistogram(NamedTuple):
    """Histogram of waits: of the longest waiting event of each published file, since acceptance.

    `counts` by the classes of BOUNDS_MS and one more, `sum_ms` of all of them.
    """

    counts: tuple[int, ...]
    sum_ms: int

    @property
    def files(self) -> int:
        """Number of published files."""
        return sum(self.counts)

    def percentile(self, share: float) -> float | None:
        """Return the wait (ms) below which `share` (0 to 1) of the waits lie, interpolated within a
        class; None without any.
        """
        wanted, below, seen = share * self.files, 0.0, 0
        if not self.files:
            return None
        for bound, count in zip((*BOUNDS_MS, BOUNDS_MS[-1]), self.counts, strict=True):
            if count and seen + count >= wanted:
                return below + (bound - below) * (wanted - seen) / count
            seen, below = seen + count, float(bound)
        return below


class MinuteCounts(NamedTuple):
    """Counts by name and waits of one minute; `minute` counts from 1970."""

    minute: int
    counts: Mapping[str, int]
    waits: WaitHistogram


class Counters:
    """Counters of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, Keys(site)

    def totals(self) -> tuple[dict[str, int], WaitHistogram]:
        """Return counts by name and waits, since the state exists."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.stats)
        return _taken_apart(stored)

    def minutes(self, most: int, until_s: float | None = None) -> list[MinuteCounts]:
        """Return the last `most` minutes until `until_s` (s since 1970; None: now), in order."""
        last = int((time.time() if until_s is None else until_s) // 60)
        wanted = range(last - most + 1, last + 1)
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for minute in wanted:
                pipe.hgetall(self._keys.pulse(minute))
            found = pipe.execute()
        return [MinuteCounts(m, *_taken_apart(each)) for m, each in zip(wanted, found, strict=True)]


def together(waits: Sequence[WaitHistogram]) -> WaitHistogram:
    """Return the sum of these histograms."""
    counts = tuple(map(sum, zip(*(each.counts for each in waits), strict=True)))
    return WaitHistogram(counts or (0,) * (len(BOUNDS_MS) + 1), sum(each.sum_ms for each in waits))


def _taken_apart(stored: Mapping[bytes, bytes]) -> tuple[dict[str, int], WaitHistogram]:
    counts = {name.decode(): int(count) for name, count in stored.items()}
    sum_ms = counts.pop(f"{_WAITED}ms", 0)
    classes = tuple(counts.pop(f"{_WAITED}{n}", 0) for n in range(len(BOUNDS_MS) + 1))
    return counts, WaitHistogram(classes, sum_ms)
