"""The outcome as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from math import isnan
from typing import Any

from tests.bench.simulate.costs import ASSUMED, Costs
from tests.bench.simulate.figures import Figures
from tests.bench.simulate.ladder import Rung
from tests.bench.simulate.outcome import Outcome
from tests.bench.simulate.points import Point
from tests.bench.simulate.prices import OFFERS, bill
from tests.bench.simulate.scenario import Scenario


def source(figures: Figures) -> Iterator[str]:
    """Yield where the costs are from, and what is assumed beside them."""
    machine = figures.machine
    yield f"costs: {machine['system']}, Python {machine['python']}; {figures.runs}"
    for what in ASSUMED.values():
        yield f"assumed: {what}"


def held(points: Iterable[Point]) -> Iterator[str]:
    """Yield the table of the points that were measured."""
    yield f"{'held against the benchmark':<48}{'measured':>10}{'model':>10}{'error':>8}"
    for each in points:
        unit = f" {each.unit}"
        yield (
            f"{each.name:<48}{each.measured:>10,.5g}{each.modelled:>10,.5g}{each.error:>+8.0%}{unit}"
        )


def machines(scenario: Scenario) -> str:
    """Return the machines of a scenario in one line."""
    form = "xml.gz" if scenario.gzip else "xml"
    return (
        f"web processes {scenario.web}, workers {scenario.workers} with {scenario.threads} threads"
        f" each, publisher hosts {scenario.hosts}, masters of Redis {scenario.masters} with"
        f" {scenario.redis_gb:g} GB each, {form} files of {scenario.shard_urls:,} URLs, a pass each"
        f" {scenario.interval:g} s"
    )


def load(scenario: Scenario) -> str:
    """Return the load of a scenario in one line."""
    return (
        f"{scenario.urls:,.0f} URLs, {scenario.sites:,} sites, {scenario.events:,.0f} events/s,"
        f" {scenario.per_delivery:g} in a delivery"
    )


def details(outcome: Outcome, costs: Costs) -> Iterator[str]:
    """Yield what one simulation showed."""
    yield load(outcome.scenario)
    yield machines(outcome.scenario)
    others = outcome.lag_p99_others
    beside = "" if isnan(others) else f"; published at the other sites, p99 {others:.2f} s"
    yield f"POST to visible: p50 {outcome.lag_p50:.2f} s, p99 {outcome.lag_p99:.2f} s{beside}"
    for name, share in outcome.shares.items():
        yield f"  {name:<32}{share:>6.0%}"
    yield (
        f"publish passes {outcome.passes_s:,.0f}/s, files {outcome.files_s:,.0f}/s,"
        f" {outcome.written_s / 1e6:,.0f} MB/s; log of Redis {outcome.log_s / 1e6:,.1f} MB/s"
    )
    yield (
        f"network: senders {outcome.senders_s / 1e6:,.1f} MB/s, Redis"
        f" {outcome.redis_network_s / 1e6:,.0f} MB/s; web roots {outcome.web_root / 1e9:,.1f} GB"
    )
    kinds = ", ".join(f"{name} {size / 1e9:,.1f}" for name, size in outcome.memory.items() if size)
    yield f"memory of Redis, GB: {kinds}; twice that while it rewrites its log"
    yield from money(outcome, costs)


def money(outcome: Outcome, costs: Costs) -> Iterator[str]:
    """Yield a month's bill of each offer."""
    for offer in OFFERS:
        items = bill(outcome, offer, costs.gzip_bytes)
        if items is None:
            yield f"{offer.name}: no machine is large enough"
            continue
        lines = "; ".join(f"{item.what} {item.price:,.0f}" for item in items)
        whole = sum(item.price for item in items)
        yield f"{offer.name}: {offer.currency} {whole:,.0f} a month: {lines} ({offer.source})"


HEAD = "| Events/s | Lag p50, p99 | What breaks | What helps |\n|--:|--:|---|---|"


def row(rung: Rung) -> str:
    """Return one row of the table of the ladder."""
    outcome = rung.outcome
    broken = "; ".join(
        f"{name} ({outcome.shares[name]:.0%})" if name in outcome.shares else name
        for name in rung.breaks
    )
    return (
        f"| {outcome.scenario.events:,.0f} | {outcome.lag_p50:.2f} s, {outcome.lag_p99:.2f} s |"
        f" {broken or 'nothing'} | {'; '.join(rung.remedies)} |"
    )


def document(
    figures: Figures, points: Sequence[Point], given: Outcome, rungs: Sequence[Rung], costs: Costs
) -> dict[str, Any]:
    """Return all of it for a program."""
    return {
        "machine": figures.machine, "runs": figures.runs, "costs": asdict(costs),
        "points": [{**point._asdict(), "error": point.error} for point in points],
        "given": _outcome(given, costs),
        "ladder": [
            {**_outcome(rung.outcome, costs), "breaks": [*rung.breaks],
             "remedies": [*rung.remedies]}
            for rung in rungs
        ],
    }  # fmt: skip


def _outcome(outcome: Outcome, costs: Costs) -> dict[str, Any]:
    bills = {offer.name: bill(outcome, offer, costs.gzip_bytes) for offer in OFFERS}
    # JSON has no NaN: a lag of no event at all is null.
    known = {
        name: None if isinstance(value, float) and isnan(value) else value
        for name, value in asdict(outcome).items()
    }
    return {
        **known,
        "month": {
            name: {item.what: round(item.price, 2) for item in items} if items else None
            for name, items in bills.items()
        },
    }
