"""Looking pages up in a large site, as `sitemap.html` and the page inspector do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from lxml import etree

from shared.admin.page_search import PageSearch
from shared.events.event import Event
from tests.bench.bed import Bed
from tests.bench.report import Report, compared
from tests.bench.scale import Scale

SEARCHES = 3


def lookup(report: Report, bed: Bed, pages: Sequence[Event], scale: Scale) -> None:
    """One URL next to parsing the one file that lists it; a part of a URL in all files next to the
    same search in the files themselves.
    """
    search, pairs = PageSearch(bed.client, bed.name, bed.site), []
    for page in pages[: scale.rounds]:
        assert page.loc is not None
        found = search.listing(page.loc).page
        assert found is not None
        path = bed.site.web_root / found.file
        pairs.append(
            (_ms(partial(search.listing, page.loc)), _ms(partial(etree.parse, path)))
        )  # fmt: skip
    what = f"of {scale.urls:,} URLs, one looked up"
    report.add(compared(what, "ms", pairs, "parsing the file that lists it"))
    files = sorted(bed.site.web_root.glob("pages-*.xml"))
    pairs = [
        (
            _ms(lambda: search.containing("no-page-has-this", seconds=float("inf"))),
            _ms(lambda: [path.read_bytes().lower().find(b"no-page-has-this") for path in files]),
        )
        for _ in range(SEARCHES)
    ]
    what = f"of {scale.urls:,} URLs, those with a part"
    report.add(compared(what, "ms", pairs, "the same search in all published files"))


def _ms(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3
