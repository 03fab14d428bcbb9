"""The way of events under load: accepted, visible, published; each next to what others do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shared.batches import batches
from shared.events.event import Event
from tests.bench.accept import accepted
from tests.bench.corpus import BASE, Corpus
from tests.bench.report import Report
from tests.bench.scale import Scale
from tests.bench.service import SITE, Service, base_of, post, until
from tests.bench.visible_loaded import loaded

QUIET = tuple(f"quiet{number}" for number in range(1, 9))
PAGES = 10
"""The pages of a site are a tenth of the events of a run: 10,000, one shard."""


def flow(report: Report, running: Service, corpus: Corpus, scale: Scale) -> None:
    """All of it: over HTTP with a loaded site and quiet ones, then in process."""
    sites = {
        site: listed(running, site, list(corpus.pages(scale.events // PAGES)))
        for site in (SITE, *QUIET)
    }
    sustained = accepted(report, running, sites[SITE], corpus, scale)
    loaded(report, running, sites, corpus, scale, sustained / 2)


def listed(running: Service, site: str, pages: Sequence[Event]) -> list[Event]:
    """`pages` as those of `site`, published."""
    base, connection = base_of(site), running.connect()
    own = [replace(page, loc=str(page.loc).replace(BASE, base)) for page in pages]
    others = running.listed(site)
    for number, part in enumerate(batches(own, 1_000)):
        post(connection, running.signed(part, f"{site}-load-{number}"), site)
    until(lambda: running.listed(site) == others + len(own))
    return own
