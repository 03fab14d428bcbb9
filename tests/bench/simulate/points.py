"""The model held against what was measured: the same load on the same machine, simulated.

None of these rows feeds the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tests.bench.simulate.costs import Costs
from tests.bench.simulate.figures import Figures, Row
from tests.bench.simulate.model import Model
from tests.bench.simulate.scenario import Delivery, Scenario

BENCH = Scenario(
    sites=1, urls=100_000, events=0, uniform=True, bursts=0, cores=2, rtt_s=0, seconds=math.inf,
    warm=0,
)  # fmt: skip
"""The machine of the benchmark: two cores for all, sockets instead of a network."""
IDLE = Row("POST to visible, [\\d,]+ URLs, shards of 10,000, idle", "served")
BUSY = Row("POST to visible on the site that takes [\\d,]+ events/s, by tens", "served")
QUIET = Row(
    "POST to visible on a quiet site, while another takes [\\d,]+ events/s, by tens", "served"
)
QUIET_P99 = Row("p99 of these \\d+ POSTs", "served")
FEW = Row("published, [\\d,]+ events over as many URLs", "rates")
MANY = Row("published, [\\d,]+ events over 1,000 shards of 200 URLs, once", "published")
_QUIET_SITES, _FLOOD_S, _TENS = 8, 12.0, 10


class Point(NamedTuple):
    """One figure, as measured and as the model has it; `error` is -0.1 for a tenth less."""

    name: str
    unit: str
    measured: float
    modelled: float

    @property
    def error(self) -> float:
        """The error of the model, as a share of what was measured."""
        return self.modelled / self.measured - 1


def points(figures: Figures, costs: Costs) -> list[Point]:
    """Return all points whose rows `figures` have. Raises MissingRowError."""
    return [*_idle(figures, costs), *_flooded(figures, costs), *_backlogs(figures, costs)]


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of `values` do not exceed; NaN of none."""
    if not values:
        return math.nan
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _idle(figures: Figures, costs: Costs) -> list[Point]:
    """One event every two seconds."""
    model = Model(BENCH, costs)
    model.run((Delivery(2.0 * turn, 0, 1) for turn in range(400)), until_rest=True)
    lags, row = [lag * 1e3 for _, lag in model.lags], figures.row(IDLE)
    name = "POST to visible, idle"
    return _both(name, row, lags)


def _flooded(figures: Figures, costs: Costs) -> list[Point]:
    """A thousand events a second by tens on one site; single ones on others and on itself."""
    row = figures.row(BUSY)
    per_s = float(row["name"].split("takes ")[1].split()[0].replace(",", ""))
    scenario = replace(BENCH, sites=1 + _QUIET_SITES, urls=10_000 * (1 + _QUIET_SITES))
    flood = [Delivery(at * _TENS / per_s, 0, _TENS) for at in range(int(_FLOOD_S * per_s / _TENS))]
    probes = [
        Delivery(1.5 + turn * 0.19, 1 + turn % _QUIET_SITES, 1)
        for turn in range(int((_FLOOD_S - 2) / 0.19))
    ]
    model = Model(scenario, costs)
    model.run(sorted(flood + probes), until_rest=True)
    itself = [lag * 1e3 for site, lag in model.lags if site == 0]
    beside = [lag * 1e3 for site, lag in model.lags if site]
    quiet = figures.row(QUIET)
    # The same row is there for single events too: the one meant follows its flood.
    high = float(figures.row(QUIET_P99, after=quiet["name"])["value"])
    return [
        *_both(f"POST to visible at {per_s:,.0f} events/s", row, itself),
        *_both("POST to visible on a quiet site beside it", {**quiet, "p99": None}, beside),
        Point("the same, p99", "ms", high, quantile(beside, 0.99)),
    ]


def _both(name: str, row: dict[str, object], lags: Sequence[float]) -> list[Point]:
    found = [Point(f"{name}, p50", "ms", float(str(row["value"])), quantile(lags, 0.5))]
    if row["p99"] is not None:
        found.append(Point(f"{name}, p99", "ms", float(str(row["p99"])), quantile(lags, 0.99)))
    return found


def _backlogs(figures: Figures, costs: Costs) -> list[Point]:
    """A full inbox of one site, worked off."""
    found = []
    cases = (
        (FEW, 100_000, 10_000, "a backlog over 10 files of 10,000 URLs"),
        (MANY, 200_000, 200, "a backlog over 1,000 files of 200 URLs"),
    )
    for row, urls, shard_urls, name in cases:
        figure = figures.row(row)
        events = int(figure["name"].split(", ")[1].split()[0].replace(",", ""))
        model = Model(replace(BENCH, urls=urls, shard_urls=shard_urls), costs)
        site = model.sites[0]
        model.fill(site, events, 0.0)
        site.awake = True
        model.env.process(model.wake(site))
        model.run((), until_rest=True)
        found.append(
            Point(name, "events/s", figure["value"], events / model.visible_at)
        )  # fmt: skip
    return found
