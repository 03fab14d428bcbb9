"""The load raised step by step: what breaks first, what helps, and what breaks then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tests.bench.simulate import outcome as named
from tests.bench.simulate.costs import Costs
from tests.bench.simulate.outcome import Outcome, simulate
from tests.bench.simulate.scenario import Scenario

STEPS = (0.1, 0.3, 1.0)
"""Loads, as shares of the events of the scenario."""
HALF = 0.5
DIVIDE = "the busiest site divided into several (not simulated)"
"""What ends a ladder: a site has one publisher, and at most 256 files of it a second."""
MOST_REMEDIES = 12
"""Rungs of one load: so many doublings help, or none does."""

Remedy = Callable[[Scenario], tuple[str, Scenario]]


class Rung(NamedTuple):
    """One simulation: what broke, the fullest first, and the remedies; both empty if all held."""

    outcome: Outcome
    breaks: Sequence[str]
    remedies: Sequence[str]


def _web(s: Scenario) -> tuple[str, Scenario]:
    return f"{s.web * 2} web processes", replace(s, web=s.web * 2)


def _workers(s: Scenario) -> tuple[str, Scenario]:
    return f"{s.workers * 2} workers", replace(s, workers=s.workers * 2)


def _threads(s: Scenario) -> tuple[str, Scenario]:
    return f"{s.threads * 4} threads each", replace(s, threads=s.threads * 4)


def _masters(s: Scenario) -> tuple[str, Scenario]:
    return f"{s.masters * 2} masters of Redis", replace(s, masters=s.masters * 2)


def _disk(s: Scenario) -> tuple[str, Scenario]:
    if not s.gzip:
        return "files as xml.gz", replace(s, gzip=True)
    hosts = s.hosts * 2
    return f"{hosts} publisher hosts", replace(s, hosts=hosts, workers=max(s.workers, hosts))


def _divide(s: Scenario) -> tuple[str, Scenario]:
    return DIVIDE, s


REMEDIES: dict[str, Remedy] = {
    named.WEB: _web, named.WORKERS: _workers, named.THREADS: _threads, named.REDIS: _masters,
    named.LOG: _masters, named.MEMORY: _masters, named.DISK: _disk, named.SITE: _divide,
    named.LAG: _divide,
}  # fmt: skip
"""What is done about each: twice as much of it, or less work. Events that are late while no
resource is full are those of one site, which has one publisher.
"""


def ladder(scenario: Scenario, costs: Costs, steps: Sequence[float] = STEPS) -> Iterator[Rung]:
    """Yield the simulations of each load; after remedies the same load comes again.

    Ends when nothing helps any more.
    """
    for step in steps:
        for _ in range(MOST_REMEDIES):
            found = simulate(replace(scenario, events=scenario.events * step), costs)
            breaks, helped, better = found.breaks, [], scenario
            for each in breaks:
                remedy, changed = _waits_for(each, found)(better)
                if remedy not in helped and changed.masters <= 2 * scenario.masters:
                    better = changed
                    helped.append(remedy)
            yield Rung(found, breaks, helped)
            if not breaks:
                break
            if better == scenario:
                return
            scenario = better


def _waits_for(broken: str, found: Outcome) -> Remedy:
    """Return the remedy; the publisher of one site waits for workers or a disk half busy."""
    if broken in {named.SITE, named.LAG}:
        for other in (named.WORKERS, named.DISK):
            if found.shares[other] > HALF:
                return REMEDIES[other]
    return REMEDIES[broken]
