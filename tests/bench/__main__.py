"""`python -m tests.bench [NAME..]`: measure, print one table, write it as JSON beside."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from shared.telemetry import logs
from tests.bench import http, idle, latency, rates, sites, sources, start
from tests.bench.bed import bed, server
from tests.bench.corpus import Corpus
from tests.bench.report import Report
from tests.bench.scale import FULL, TINY, Scale

NAMES = (
    "latency", "cost", "memory", "shards", "rerender", "rates", "http", "start", "scale",
    "sources", "idle",
)  # fmt: skip

HUGE = 1_000_000
"""URLs that --huge imports."""


def main() -> int:
    """Run the benchmarks named, all by default; 1 with --strict if a promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--json", type=Path, default=Path("bench-results.json"))
    parser.add_argument("--urls", type=int, help="size of the large site")
    parser.add_argument("--tiny", action="store_true", help="every row of 1,000 URLs: no figures")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a promise was not kept")
    parser.add_argument(
        "--huge", action="store_true", help=f"also {sites.HUGE:,} URLs, {HUGE:,} imported"
    )
    options = parser.parse_args()
    scale = _scale(options)
    names = set(options.names or NAMES)
    if unknown := names - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    logs.configure(level="error")
    report, began = Report(), time.monotonic()
    if names & {"latency", "cost", "memory"}:
        large(report, names, scale)
    if "shards" in names:
        shards(report, scale)
    if "rerender" in names:
        latency.rerender(report, Corpus(), scale)
    if "rates" in names:
        with server() as client, bed(client, "rates", interval=1.0) as site:
            rates.rates(report, site, Corpus(), scale)
    if "http" in names:
        http.over_http(report, Corpus(), scale)
    if "start" in names:
        start.start(report, scale)
    for name, part in {"scale": sites.sites, "sources": sources.sources, "idle": idle.idle}.items():
        if name in names:
            part(report, Corpus(), scale)
    report.show()
    report.write(options.json)
    print(f"{time.monotonic() - began:.0f} s; {options.json}")
    return 1 if options.strict and report.broken else 0


def _scale(options: argparse.Namespace) -> Scale:
    scale = TINY if options.tiny else FULL
    if options.huge:
        scale = scale._replace(sites=(*scale.sites, sites.HUGE), source=HUGE)
    return scale._replace(urls=options.urls or scale.urls)


def large(report: Report, names: set[str], scale: Scale) -> None:
    """Measure in one large site in shards of 10,000."""
    corpus = Corpus()
    with server() as client, bed(client, "large") as site, bed(client, "small") as little:
        empty = int(client.info("memory")["used_memory"])
        pages = site.load(corpus.pages(scale.urls))
        if "memory" in names:
            latency.memory(report, site, empty)
        if "latency" in names:
            what = f"{scale.urls:,} URLs, shards of 10,000"
            latency.latency(report, site, pages, corpus, scale, what)
        if "cost" in names:
            few = little.load(corpus.pages(scale.small))
            latency.cost(report, (site, pages), (little, few), corpus, scale)


def shards(report: Report, scale: Scale) -> None:
    """Event to visible with other sizes of shards, and in the gzip form."""
    for size, form in ((2_000, "xml"), (50_000, "xml"), (10_000, "xml.gz")):
        corpus = Corpus()
        with server() as client, bed(client, "large", shard_urls=size, form=form) as site:
            pages = site.load(corpus.pages(scale.urls))
            what = f"{scale.urls:,} URLs, shards of {size:,}" + (
                f", {form}" if form != "xml" else ""
            )
            latency.latency(report, site, pages, corpus, scale, what)


if __name__ == "__main__":
    sys.exit(main())
