"""`python -m tests.bench.simulate`: simulate a load on machines, and raise it until they break."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.bench.simulate import report
from tests.bench.simulate.costs import Costs
from tests.bench.simulate.figures import MEASURED, Figures, MissingRowError
from tests.bench.simulate.ladder import ladder
from tests.bench.simulate.outcome import simulate
from tests.bench.simulate.points import points
from tests.bench.simulate.scenario import Scenario

_GIVEN = Scenario()


def main(arguments: list[str] | None = None) -> int:
    """Print the simulation; 2 if a figure that it needs is missing."""
    options = _options(arguments)
    try:
        figures = Figures.load(options.figures)
        costs = Costs.of(figures)
        measured = points(figures, costs)
    except MissingRowError as error:
        print(f"{options.figures}: {error}", file=sys.stderr)
        return 2
    scenario = Scenario(
        sites=options.sites, urls=options.urls, events=options.events,
        per_delivery=options.per_delivery, mean=options.mean, web=options.web,
        workers=options.workers, threads=options.threads, hosts=options.hosts,
        masters=options.masters, redis_gb=options.redis_gb, interval=options.interval,
        shard_urls=options.shard_urls, gzip=options.gzip, seed=options.seed,
    )  # fmt: skip
    for line in (*report.source(figures), "", *report.held(measured), ""):
        print(line)
    given = simulate(scenario, costs)
    for line in report.details(given, costs):
        print(line)
    rungs = []
    if not options.no_ladder:
        print(f"\n{report.HEAD}")
        for rung in ladder(scenario, costs):
            rungs.append(rung)
            print(report.row(rung), flush=True)
        print("\nthe last row:")
        for line in report.details(rungs[-1].outcome, costs):
            print(line)
    document = report.document(figures, measured, given, rungs, costs)
    options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulate", description=__doc__)
    add = parser.add_argument
    add("--figures", type=Path, default=MEASURED, help="a bench-results.json of your machine")
    add("--json", type=Path, default=Path("simulate-results.json"))
    add("--sites", type=int, default=_GIVEN.sites)
    add("--urls", type=float, default=_GIVEN.urls, help="of all sites")
    add("--events", type=float, default=_GIVEN.events, help="a second, at the busiest hour")
    add("--per-delivery", type=float, default=_GIVEN.per_delivery, help="events of one POST")
    add("--mean", type=float, default=_GIVEN.mean, help="the mean load of a week, as a share")
    add("--web", type=int, default=_GIVEN.web, help="web processes")
    add("--workers", type=int, default=_GIVEN.workers)
    add("--threads", type=int, default=_GIVEN.threads, help="of each worker")
    add("--hosts", type=int, default=_GIVEN.hosts, help="with workers and web roots")
    add("--masters", type=int, default=_GIVEN.masters, help="of Redis")
    add("--redis-gb", type=float, default=_GIVEN.redis_gb, help="memory of each master")
    add("--interval", type=float, default=_GIVEN.interval, help="publish interval, seconds")
    add("--shard-urls", type=int, default=_GIVEN.shard_urls, help="URLs of a file")
    add("--gzip", action="store_true", help="files as xml.gz")
    add("--seed", type=int, default=_GIVEN.seed)
    add("--no-ladder", action="store_true", help="only the load and the machines given")
    options = parser.parse_args(arguments)
    amounts = ("sites", "urls", "events", "per_delivery", "web", "workers", "threads", "hosts",
               "masters", "redis_gb", "interval", "shard_urls")  # fmt: skip
    for name in amounts:
        if not 0 < getattr(options, name) < float("inf"):
            parser.error(f"--{name.replace('_', '-')} must be more than 0")
    if options.hosts > options.workers:
        parser.error("each of --hosts needs one of --workers")
    return options


if __name__ == "__main__":
    sys.exit(main())
