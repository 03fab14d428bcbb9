"""Counters of a site: totals, and counts per minute for the last day."""

from __future__ import annotations

import sys
import time
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import redis

from shared.domain.sender_habit import WEEK, silent_hours
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.round_trips import Reading, gathered, pairs, read

BOUNDS_MS = (
    2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000,
    5_000, 10_000, 20_000, 60_000, 300_000, 3_600_000,
)  # fmt: skip
"""Upper bounds of the histogram classes of waits (ms); the last class has none."""

HABIT_WEEKS = 5
"""Weeks for which the events of each hour are kept, as in accept.lua; the running one included."""

RATE_MINUTES = 5

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


class SpanCounts(NamedTuple):
    """Counts by name and waits of one span of time, which began at `begin_s` (s since 1970)."""

    begin_s: int
    counts: Mapping[str, int]
    waits: WaitHistogram


class Counters:
    """Counters of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)

    def totals(self) -> tuple[dict[str, int], WaitHistogram]:
        """Return counts by name and waits, since the state exists."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.stats)
        return totals_of(stored)

    def minutes(self, most: int, until_s: float | None = None) -> list[MinuteCounts]:
        """Return the last `most` minutes until `until_s` (s since 1970; None: now), in order."""
        return read(self._client, self.minutes_reading(most, until_s))

    def spans(self, seconds: int, most: int, until_s: float) -> list[SpanCounts]:
        """Return the last `most` spans of `seconds` each until `until_s` (s since 1970), in order:
        of hours from the counts by the hour, of shorter ones from those by the minute.
        """
        unit, key = (3600, self._keys.hour) if seconds % 3600 == 0 else (60, self._keys.pulse)
        last, each = int(until_s // seconds), seconds // unit
        firsts = range(last - most + 1, last + 1)
        found = read(
            self._client, _hashes([key(at * each + n) for at in firsts for n in range(each)])
        )
        return [
            SpanCounts(at * seconds, *_summed(found[n * each : (n + 1) * each]))
            for n, at in enumerate(firsts)
        ]

    def minutes_reading(
        self, most: int, until_s: float | None = None
    ) -> Reading[list[MinuteCounts]]:
        """Return the Reading of `minutes`."""
        last = int((time.time() if until_s is None else until_s) // 60)
        wanted = range(last - most + 1, last + 1)
        found = yield [("HGETALL", self._keys.pulse(minute)) for minute in wanted]
        return [
            MinuteCounts(minute, *totals_of(pairs(each)))
            for minute, each in zip(wanted, found, strict=True)
        ]


class HourCounts(NamedTuple):
    """Recent counts of one site: events accepted per minute, of the last RATE_MINUTES whole ones,
    and the waits of this hour and the one before.
    """

    rate: float
    waits: Sequence[WaitHistogram]


def recent_counts(client: redis.Redis, sites: Sequence[str], now_s: float) -> list[HourCounts]:
    """Return the counts of `sites` at `now_s` (s since 1970), in one round trip."""
    return read(client, gathered(_recent_reading(site, now_s) for site in sites))


def _recent_reading(site: str, now_s: float) -> Reading[HourCounts]:
    keys, minute, hour = keys_of(site), int(now_s // 60), int(now_s // 3600)
    *minutes, first, last = yield (
        *(("HGET", keys.pulse(minute - back), "accepted") for back in range(1, RATE_MINUTES + 1)),
        *(("HGETALL", keys.hour(each)) for each in (hour - 1, hour)),
    )
    waits = [totals_of(pairs(each))[1] for each in (first, last)]
    return HourCounts(sum(int(each or 0) for each in minutes) / RATE_MINUTES, waits)


@dataclass(frozen=True)
class AcceptedHours:
    """Numbers of accepted events: of each hour, the oldest first and the running one last; and when
    the last one was accepted (ms since 1970; 0: none ever).
    """

    hours: Sequence[int]
    last_ms: int

    @cached_property
    def silent(self) -> int | None:
        """Hours without an event, against the habit of the sender (sender_habit.silent_hours)."""
        return silent_hours(self.hours)


def accepted_of(weeks: Sequence[bytes], last_id: bytes, hour: int) -> AcceptedHours:
    """Return the events of each hour of these `weeks`, the last with the running `hour` (since
    1970); `last_id` is the last one's.
    """
    last_ms = int(last_id.partition(b"-")[0])
    if not any(weeks):
        return AcceptedHours((), last_ms)
    packed = b"".join(each.ljust(4 * WEEK, b"\0") for each in weeks)
    hours = array("I", packed)
    if sys.byteorder == "little":
        hours.byteswap()
    return AcceptedHours(hours[: len(hours) - WEEK + hour % WEEK + 1], last_ms)


def _hashes(keys: Sequence[str]) -> Reading[Sequence[Any]]:
    return (yield [("HGETALL", key) for key in keys])


def _summed(stored: Sequence[Any]) -> tuple[dict[str, int], WaitHistogram]:
    parts = [totals_of(pairs(each)) for each in stored if each]
    counts = Counter[str]()
    for found, _ in parts:
        counts.update(found)
    return dict(counts), together([waits for _, waits in parts])


def together(waits: Sequence[WaitHistogram]) -> WaitHistogram:
    """Return the sum of these histograms."""
    counts = tuple(map(sum, zip(*(each.counts for each in waits), strict=True)))
    return WaitHistogram(counts or (0,) * (len(BOUNDS_MS) + 1), sum(each.sum_ms for each in waits))


def totals_of(stored: Mapping[bytes, bytes]) -> tuple[dict[str, int], WaitHistogram]:
    """Return counts by name and waits from a stored hash."""
    counts = {name.decode(): int(count) for name, count in stored.items()}
    sum_ms = counts.pop(f"{_WAITED}ms", 0)
    classes = tuple(counts.pop(f"{_WAITED}{n}", 0) for n in range(len(BOUNDS_MS) + 1))
    return counts, WaitHistogram(classes, sum_ms)
