"""How many events a second are published, by how many of the shards they change, next to a Celery
task for each event.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from shared.batches import batches
from shared.events.event import Event
from tests.bench import celery_pages
from tests.bench.bed import LOAD, Bed, bed, server
from tests.bench.corpus import Corpus
from tests.bench.report import Figure, Report
from tests.bench.scale import Scale
from tests.bench.service import ROOT, until
from tests.faults.plain_celery_app import create

FEW = 10
PART = 5
"""The site has a fifth of the pages of the large one: to load more takes longer than to measure."""
TARGET_PER_S = 15_000


def published(report: Report, corpus: Corpus, scale: Scale) -> None:
    """From the inbox to the last file visible, in one site of many shards; once each, since it
    takes seconds.
    """
    urls = scale.urls // PART
    shard_urls = urls // scale.shards
    first: list[Event] = []
    with server() as client, bed(client, "shards", shard_urls=shard_urls, interval=1.0) as site:
        # `load` returns every fiftieth page, and the first ones are those of the first shards.
        spread = site.load(_noting(corpus.pages(urls), first, FEW * shard_urls))
        for shards, pages, count in (
            (FEW, first, scale.events), (scale.shards, spread, scale.events // PART)
        ):  # fmt: skip
            rate = drained(site, [corpus.changed(page) for page in _some(pages, count)])
            what = f"events over {shards:,} shards of {shard_urls:,} URLs"
            name = f"published, {count:,} {what}, once"
            if shards == FEW:
                tasks = [corpus.changed(page) for page in _some(first, scale.tasks)]
                plain, against = celery(first, tasks), f"a Celery task each, {scale.tasks:,} events"
                holds = rate >= TARGET_PER_S
                figure = Figure(
                    name, "/s", rate, None, against, plain, None, rate / plain,
                    f">= {TARGET_PER_S:,}", holds,
                )  # fmt: skip
            else:
                figure = Figure(name, "/s", rate)
            report.add(figure)


def _noting(pages: Iterator[Event], first: list[Event], count: int) -> Iterator[Event]:
    for page in pages:
        if len(first) < count:
            first.append(page)
        yield page


def _some(pages: Sequence[Event], count: int) -> Iterator[Event]:
    return islice(cycle(pages), count)


def drained(site: Bed, events: Sequence[Event]) -> float:
    """Events a second from a full inbox until the last file is visible, one pass each interval."""
    for batch in batches(events, LOAD):
        site.pump.inbox.accept(batch)
    began = time.perf_counter()
    site.pump.run()
    assert not site.publisher.waiting(1)
    return len(events) / (site.publisher.visible_at - began)


def celery(pages: Sequence[Event], events: Sequence[Event]) -> float:
    """The same by tests/bench/celery_pages.py, whose hashes hold `pages`: from the first task that
    a running worker has done until the last of `events` is in its file.
    """
    with server() as client, TemporaryDirectory(prefix="sitemapd-bench-") as root:
        path = client.connection_pool.connection_kwargs["path"]
        client.config_set("appendfsync", "no")
        for batch in batches(pages, LOAD):
            pipe = client.pipeline(transaction=False)
            for page in batch:
                loc = str(page.loc)
                line = celery_pages.entry(loc, str(page.lastmod))
                pipe.hset(celery_pages.shard_of(loc, FEW), loc, line)
            pipe.execute()
        with create(celery_pages.broker(path), "") as sender:
            for event in events:
                sender.send_task("store", (event.loc, event.lastmod, FEW))
        client.config_set("appendfsync", "always")
        worker = _worker(path, Path(root))
        try:
            until(lambda: client.exists(celery_pages.STORED), 0.001)
            began, before = time.perf_counter(), int(client.get(celery_pages.STORED) or 0)
            until(lambda: int(client.get(celery_pages.VISIBLE) or 0) >= len(events), 0.005)
            return (len(events) - before) / (time.perf_counter() - began)
        finally:
            worker.terminate()
            worker.wait()


def _worker(path: str, root: Path) -> subprocess.Popen[bytes]:
    environment = {"CELERY_PAGES_SOCKET": path, "CELERY_PAGES_ROOT": str(root)}
    return subprocess.Popen(
        [
            sys.executable, "-m", "celery", "-A", "tests.bench.celery_pages", "worker",
            "--pool", "solo", "--concurrency", "1", "--loglevel", "ERROR",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
        ],
        cwd=ROOT, env=os.environ | environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
