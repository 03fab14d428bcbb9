"""One changed URL of a large site, sitemapd beside its peers; and a whole site from the state.

All files are gzipped (`form = "xml.gz"`) and hold 10,000 pages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median

import pytest

from shared.events.event import Event
from shared.store.publishing.publish_batch import PASS_SHARDS
from shared.store.publishing.publish_state import PublishState
from tests.bench.bed import CONSUMER, Bed, bed, server
from tests.bench.corpus import Corpus
from tests.bench.peers import batch_jobs, cost, django_site, sitemap_js, wordpress_posts
from tests.bench.peers.cost import Cost, Page
from tests.bench.report import Report, compared
from tests.bench.scale import Scale
from worker.checks.verify import Verification
from worker.publishing.publisher import Publisher

EVENTS = 15
"""Changes before a run of a peer, and after it; their median is the other half of its pair."""
_DURABLE, _IN_ALL = "sitemapd, event to durable files", "sitemapd, all work for the event"
_COSTS = (
    ("", "ms", 1e3, _DURABLE), (", CPU time", "ms", 1e3, _IN_ALL), (", bytes", "kB", 1e-3, _IN_ALL),
)  # fmt: skip


def peers(report: Report, scale: Scale) -> None:
    """Measure every peer: thrice, or once where one run takes a minute."""
    corpus = Corpus()
    with server() as client, bed(client, "peers", form="xml.gz") as site:
        sample = site.load(corpus.pages(scale.urls))
        pages = [Page(str(each.loc), str(each.lastmod)) for each in Corpus().pages(scale.urls)]
        root = site.site.web_root
        whole_site(report, site, pages)
        ours = changes(site, (corpus.changed(page) for page in cycle(sample)))
        table = Table(report, f"one changed URL of {len(pages):,}", ours)
        table.add(
            "string join + isal, all files, thrice",
            lambda: cost.rebuilt(batch_jobs.joined, pages, root), times=3, at_least=150,
        )  # fmt: skip
        table.add(
            "lxml + zlib 6, all files, thrice",
            lambda: cost.rebuilt(batch_jobs.treed, pages, root), times=3, at_least=2_500,
        )  # fmt: skip
        with left_out_if_missing("sitemap.js"):
            table.add(
                f"sitemap.js {sitemap_js.VERSION}, all files, once",
                lambda: sitemap_js.rebuilt(pages, root),
            )
        django_site.prepared(pages)
        table.add(
            f"Django {django_site.VERSION}, all files, once",
            lambda: cost.rebuilt(django_site.rendered, pages, root), at_least=15_000,
        )  # fmt: skip
        with left_out_if_missing("WordPress"), wordpress_posts.posts(pages) as posts:
            table.add(
                "WordPress core, file of 2,000 and index rendered, thrice",
                posts.change, times=3,
            )  # fmt: skip


@contextmanager
def left_out_if_missing(peer: str) -> Iterator[None]:
    """Leave `peer` out, and say so, where its programs are missing and cannot be installed."""
    try:
        yield
    except pytest.skip.Exception as reason:
        print(f"  left out: {peer}: {reason}")


class Table:
    """The rows of all peers, each next to single changes of one site of sitemapd."""

    def __init__(self, report: Report, what: str, ours: Iterator[Cost]) -> None:
        self._report, self._what, self._ours = report, what, ours

    def add(
        self,
        peer: str,
        change: Callable[[], Cost],
        *,
        times: int = 1,
        at_least: float | None = None,
    ) -> None:
        """Run `change` so many `times` and add the rows of `peer`: time, CPU time, bytes
        written (by WordPress, which keeps no files: rendered).
        """
        pairs = []
        for _ in range(times):
            around = [*islice(self._ours, EVENTS)]
            theirs = change()
            around += islice(self._ours, EVENTS)
            pairs.append((theirs, Cost(*map(median, zip(*around, strict=True)))))
        for at, (suffix, unit, scale, ours) in enumerate(_COSTS):
            name = f"{self._what}{suffix}: {peer}"
            scaled = [(theirs[at] * scale, own[at] * scale) for theirs, own in pairs]
            least = None if at else at_least
            self._report.add(compared(name, unit, scaled, ours, at_least=least))


def changes(bed: Bed, events: Iterator[Event]) -> Iterator[Cost]:
    """Process `events`, one each time that is asked; the cost of each.

    Seconds end when the files are durable. CPU time is that of the worker and of Redis until the
    site is at rest, bytes are those of the files and of Redis's log.
    """
    for event in events:
        bed.pump.inbox.accept([event])
        bed.pump._publish_at = float("-inf")
        present, before = _files(bed.site.web_root), _redis(bed)
        cpu, began = time.process_time(), time.perf_counter()
        bed.pump.run()
        cpu = time.process_time() - cpu
        redis_cpu, log = (now - then for now, then in zip(_redis(bed), before, strict=True))
        files = sum(size for _, size in _files(bed.site.web_root) - present)
        yield Cost(bed.publisher.visible_at - began, cpu + redis_cpu, files + log)


def _files(root: Path) -> set[tuple[int, int]]:
    found = [path.stat() for path in root.glob("*.xml*")]
    return {(each.st_ino, each.st_size) for each in found}


def _redis(bed: Bed) -> tuple[float, float]:
    """CPU seconds and bytes in the log of Redis so far."""
    told = bed.client.info("cpu", "persistence")
    return told["used_cpu_user"] + told["used_cpu_sys"], told["aof_current_size"]


def whole_site(report: Report, bed: Bed, pages: list[Page]) -> None:
    """All files from the state, where there are none: as the publisher writes shards to compare
    with their files; and by `sitemapd rebuild`, which first checks the entry of every page.
    """
    root = bed.site.web_root
    what = f"whole site of {len(pages):,} written anew from the state"
    for name, write, times, at_most in (
        (f"{what}, thrice", publish_all, 3, 0.2),
        (f"{what} by `sitemapd rebuild`, with its check of every page, once", rebuild, 1, None),
    ):
        pairs = []
        for _ in range(times):
            for path in root.glob("*.xml*"):
                path.unlink()
            began = time.perf_counter()
            write(bed)
            seconds = time.perf_counter() - began
            assert not [*_verification(bed).verify()]
            pairs.append((seconds, cost.rebuilt(batch_jobs.joined, pages, root).seconds))
        report.add(compared(name, "s", pairs, "string join + isal", at_most=at_most))


def publish_all(bed: Bed) -> None:
    """Publish every shard of the site, with or without patches."""
    publisher = Publisher(bed.client, bed.name, bed.site, CONSUMER)
    left = [*PublishState(bed.client, bed.name).shards(bed.site.limits)]
    while left:
        published = publisher.publish(again=left[:PASS_SHARDS])
        assert published is not None
        assert published.shards
        left = [shard for shard in left if shard not in published.shards]


def rebuild(bed: Bed) -> None:
    """Do what `sitemapd rebuild` does."""
    _verification(bed).rebuild()


def _verification(bed: Bed) -> Verification:
    return Verification(bed.client, bed.name, bed.site, CONSUMER)
