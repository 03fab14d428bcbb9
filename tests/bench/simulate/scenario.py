"""Load and machines of one simulation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import NamedTuple


@dataclass(frozen=True)
class Scenario:
    """What is sent, and what it is sent to.

    `urls` and `events` a second are spread over `sites` by Zipf's law, as are the events of a site
    over its pages, the newest first; `uniform` spreads them evenly instead. `new` is the share of
    events for new pages, `per_delivery` the events of a delivery; the share `bursts` of all
    events comes in peaks of `burst_s` seconds, each of one site, and half of that as imports in
    deliveries of IMPORT events. `mean` is the mean load of a week, as a share of `events`: what is
    kept for days grows by it.

    `cores` of 0 gives each process a core of its own; else all share so many.
    """

    sites: int = 500
    urls: float = 50e6
    events: float = 5_000
    per_delivery: float = 1
    new: float = 0.2
    bursts: float = 0.2
    burst_s: float = 2.0
    mean: float = 0.2
    uniform: bool = False
    shard_urls: int = 10_000
    gzip: bool = False
    interval: float = 1.0
    history_mb: float = 16
    web: int = 1
    workers: int = 1
    threads: int = 4
    hosts: int = 1
    masters: int = 1
    redis_gb: float = 32
    cores: int = 0
    rtt_s: float = 0.000_2
    seconds: float = 5.0
    warm: float = 1.0
    seed: int = 1


IMPORT = 1_000


class Delivery(NamedTuple):
    """One request of a sender: when, to which site, how many events."""

    at: float
    site: int
    events: int


class Zipf:
    """Draws of 0..n-1, the k-th as often as 1/(k+1) says."""

    def __init__(self, most: int) -> None:
        self._sums = [*accumulate(1 / (rank + 1) for rank in range(most))]

    def draw(self, chance: Random, count: int) -> int:
        """Return one of 0..count-1."""
        return bisect_left(self._sums, chance.random() * self._sums[count - 1], 0, count - 1)

    def share(self, rank: int, count: int) -> float:
        """Return the probability of `rank` among `count`."""
        return 1 / (rank + 1) / self._sums[count - 1]


def deliveries(scenario: Scenario, zipf: Zipf, chance: Random) -> Iterator[Delivery]:
    """Yield the deliveries of a scenario in the order of time."""
    steady = scenario.events * (1 - scenario.bursts) / scenario.per_delivery
    peaks = sorted(_peaks(scenario, zipf, chance), reverse=True)
    at = chance.expovariate(steady) if steady else float("inf")
    while at < scenario.seconds or peaks:
        while peaks and peaks[-1].at <= at:
            yield peaks.pop()
        if at >= scenario.seconds:
            if not peaks:
                return
            yield peaks.pop()
            continue
        yield Delivery(at, zipf.draw(chance, scenario.sites), _size(scenario, chance))
        at += chance.expovariate(steady)


def _size(scenario: Scenario, chance: Random) -> int:
    """Return the events of a delivery: the mean, rounded up or down by chance."""
    whole = int(scenario.per_delivery)
    return max(1, whole + (chance.random() < scenario.per_delivery - whole))


def _peaks(scenario: Scenario, zipf: Zipf, chance: Random) -> Iterator[Delivery]:
    """Yield the deliveries of peaks: a tenth of the events of all sites, for `burst_s` seconds at
    one of them.
    """
    left = round(scenario.events * scenario.bursts * scenario.seconds)
    each = max(round(scenario.events * scenario.burst_s / 10), 1)
    turn = 0
    while left:
        events = min(left, each)
        left -= events
        turn += 1
        site = zipf.draw(chance, scenario.sites)
        begins = chance.uniform(0, max(scenario.seconds - scenario.burst_s, 0))
        size = IMPORT if turn % 2 == 0 else max(1, round(scenario.per_delivery))
        while events:
            count = min(size, events)
            events -= count
            at = begins + chance.uniform(0, min(scenario.burst_s, scenario.seconds))
            yield Delivery(at, site, count)
