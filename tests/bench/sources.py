"""A site as a whole: import, reconcile, and the start of a worker that finds it in the state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import redis

from deploy.local.embedded_redis import EmbeddedServer
from shared.events.event import Event
from shared.store.connection import connect
from tests.bench import bulk
from tests.bench.bed import Bed, bed
from tests.bench.corpus import BASE, Corpus
from tests.bench.report import Figure, Report, compared
from tests.bench.scale import Scale
from tests.bench.service import ROOT, until

DIFFERENCES = 1_000
STARTS = 5


def sources(report: Report, corpus: Corpus, scale: Scale) -> None:
    """Import and reconcile `scale.source` URLs, once each; start in a site of `scale.sites`."""
    with _running() as (home, url, _):
        differences = min(DIFFERENCES, scale.source // 10)
        found = _run(url, home, scale.source, differences)
        imported(report, found)
        compares(report, found, differences)
    with _running() as (home, url, client):
        starts(report, (home, url, client), corpus, scale)


@contextmanager
def _running() -> Iterator[tuple[Path, str, redis.Redis]]:
    """A fresh server: its directory, its address, and a client."""
    with (
        TemporaryDirectory(prefix="sitemapd-bench-") as folder,
        EmbeddedServer(Path(folder)) as running,
        connect(running.url, 60.0) as client,
    ):
        yield Path(folder), running.url, client


def _run(url: str, home: Path, urls: int, differences: int) -> dict[str, float]:
    """What the process of its own printed that imports and reconciles."""
    said = subprocess.run(
        [
            sys.executable, "-m", "tests.bench.import_million", "--redis", url,
            "--root", home / "public", "--urls", str(urls), "--reconcile", str(differences),
        ],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(said.stdout)
    assert found["listed"] == urls
    return found


def imported(report: Report, found: dict[str, float]) -> None:
    """URLs a second, as time passes and for each second of the processor; memory."""
    urls = found["urls"]
    what = f"import of {urls:,} URLs from NDJSON until published, once"
    against = "json.loads and one HSET each in pipelines, once"
    rates = (
        ("", urls / found["seconds"], found["bare_urls_per_s"]),
        (", for each CPU second of its process", urls / found["cpu_s"], urls / found["bare_cpu_s"]),
    )
    for more, rate, bare in rates:
        report.add(
            Figure(
                what + more, "/s", rate, against=against, baseline=bare, ratio=rate / bare,
                hold=">= 40,000", holds=rate >= 40_000,
            )
        )  # fmt: skip
    report.add(
        Figure(
            f"peak memory of an import of {urls:,} URLs", "MiB", found["peak_mib"],
            against="the process before it", baseline=found["peak_mib_before"],
            ratio=found["peak_mib"] / found["peak_mib_before"],
        )
    )  # fmt: skip


def compares(report: Report, found: dict[str, float], differences: int) -> None:
    """Seconds of a reconcile without and with differences."""
    urls = found["urls"]
    for what, key in (("no", "compare"), (f"{differences:,}", "reconcile")):
        report.add(
            Figure(
                f"reconcile of {urls:,} URLs with {what} differences, once", "s", found[f"{key}_s"],
                against="its import", baseline=found["seconds"],
                ratio=found[f"{key}_s"] / found["seconds"],
            )
        )  # fmt: skip


def starts(
    report: Report, server: tuple[Path, str, redis.Redis], corpus: Corpus, scale: Scale
) -> None:
    """From the start of a worker until the event that waits for it is in the files."""
    home, url, client = server
    urls = {"large": scale.sites[0], "small": scale.small}
    pairs = []
    with ExitStack() as stack:
        sites = {}
        for name, count in urls.items():
            site = stack.enter_context(bed(client, name, shard_urls=scale.shard_urls))
            sites[name] = site, bulk.load(site, corpus.rows(count), count)
        for turn in range(max(1, min(STARTS, scale.rounds // 6))):
            large, small = (
                _start_s(url, home, site, corpus.changed(pages[turn]))
                for site, pages in sites.values()
            )
            pairs.append((large, small))
    name = f"start of a worker until an event is published, {urls['large']:,} URLs"
    report.add(compared(name, "s", pairs, f"with {urls['small']:,} URLs", at_most=1.15))


def _start_s(url: str, home: Path, bed: Bed, changed: Event) -> float:
    config, site = home / f"{bed.name}.toml", bed.site
    config.write_text(
        f'redis_url = "{url}"\n[sites.{bed.name}]\nbase_url = "{BASE}"\n'
        f'web_root = "{site.web_root}"\ntokens = ["sixteen characters"]\n'
        f"shard_urls = {site.shard_urls}\n",
        encoding="utf-8",
    )
    bed.pump.inbox.accept([changed])
    index = site.web_root / "sitemap.xml"
    before, began = os.stat(index).st_ino, time.perf_counter()
    worker = subprocess.Popen(
        [sys.executable, "-m", "worker.main", "--config", config],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: os.stat(index).st_ino != before, 0.001)
        return time.perf_counter() - began
    finally:
        worker.terminate()
        worker.wait()
