"""`python -m tests.bench [NAME..]`: measure, print one table, write it as JSON beside."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from shared.sitemap.shards import DEFAULT_URLS
from shared.telemetry import logs
from tests.bench import (
    bulk,
    fairness,
    flow,
    http,
    idle,
    latency,
    lookup,
    rates,
    sites,
    sources,
    start,
    timeline,
)
from tests.bench.bed import bed, server
from tests.bench.corpus import Corpus
from tests.bench.peers.rows import peers
from tests.bench.published import published
from tests.bench.report import Report
from tests.bench.scale import FULL, TINY, Scale
from tests.bench.service import service

HUGE = 1_000_000
"""URLs that --huge imports."""


def main() -> int:
    """Run the benchmarks named, all by default; 1 with --strict if a promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--json", type=Path, default=Path("bench-results.json"))
    parser.add_argument("--urls", type=int, help="size of the large site")
    parser.add_argument("--tiny", action="store_true", help="every row of 1,000 URLs: no figures")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a promise was not kept")
    parser.add_argument(
        "--huge", action="store_true", help=f"also {sites.HUGE:,} URLs, {HUGE:,} imported"
    )
    options = parser.parse_args()
    scale = _scale(options)
    names = options.names or [*PARTS]
    if unknown := set(names) - {*PARTS}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    logs.configure(level="error")
    report, began, failed = Report(), time.monotonic(), 0
    for name, part in PARTS.items():
        if name in names:
            failed += not _measured(name, part, report, scale)
            report.write(options.json)
    report.show()
    print(f"{time.monotonic() - began:.0f} s; {options.json}")
    return 1 if failed or (options.strict and report.broken) else 0


def _measured(
    name: str, part: Callable[[Report, Scale], None], report: Report, scale: Scale
) -> bool:
    """Run one part; if it fails, print why and return False: the others are measured anyway."""
    began = time.monotonic()
    try:
        part(report, scale)
    except Exception:  # noqa: BLE001  # printed, and the run fails at its end
        traceback.print_exc()
        return False
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return True


def _scale(options: argparse.Namespace) -> Scale:
    scale = TINY if options.tiny else FULL
    if options.huge:
        scale = scale._replace(sites=(*scale.sites, sites.HUGE), source=HUGE)
    return scale._replace(urls=options.urls or scale.urls)


def _latency(report: Report, scale: Scale) -> None:
    """Event to visible, with three sizes of shards, and in the gzip form."""
    for size in (DEFAULT_URLS, 2_000, 50_000):
        corpus = Corpus()
        with server() as client, bed(client, "large", shard_urls=size) as site:
            pages = bulk.load(site, corpus.rows(scale.urls), scale.urls)
            what = f"{scale.urls:,} URLs, shards of {size:,}"
            latency.latency(report, site, pages, corpus, scale, what)
            if size == DEFAULT_URLS:
                lookup.lookup(report, site, pages, scale)
    corpus, urls = Corpus(), scale.urls // 10
    with server() as client, bed(client, "large", form="xml.gz") as site:
        pages = site.load(corpus.pages(urls))
        what = f"{urls:,} URLs, shards of 10,000, xml.gz"
        latency.latency(report, site, pages, corpus, scale, what)


def _rates(report: Report, scale: Scale) -> None:
    with server() as client, bed(client, "rates", interval=1.0) as site:
        rates.rates(report, site, Corpus(), scale)


def _served(report: Report, scale: Scale) -> None:
    """What goes through the service, in one of them."""
    with service(*flow.QUIET) as running:
        http.over_http(report, running, Corpus(), scale)
        flow.flow(report, running, Corpus(2), scale)


PARTS: dict[str, Callable[[Report, Scale], None]] = {
    "latency": _latency,
    "sites": lambda report, scale: sites.sites(report, Corpus(), scale),
    "rerender": lambda report, scale: latency.rerender(report, Corpus(), scale),
    "rates": _rates,
    "served": _served,
    "published": lambda report, scale: published(report, Corpus(), scale),
    "sources": lambda report, scale: sources.sources(report, Corpus(), scale),
    "fairness": lambda report, scale: fairness.fairness(report, Corpus(), scale),
    "idle": lambda report, scale: idle.idle(report, Corpus(), scale),
    "start": start.start,
    "peers": peers,
    "timeline": lambda _, scale: timeline.timeline(scale),
}
"""What can be measured, in the order of a run."""


if __name__ == "__main__":
    sys.exit(main())
