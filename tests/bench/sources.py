"""A site as a whole: import, reconcile, and the start of a worker that finds it in the state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import redis

from deploy.local.embedded_redis import EmbeddedServer
from shared.events.event import Event
from shared.store.client import connect
from shared.store.inbox.inbox import Inbox
from tests.bench import import_million
from tests.bench.corpus import Corpus
from tests.bench.report import Figure, Report, compared
from tests.bench.scale import Scale
from tests.bench.service import ROOT, until

DIFFERENCES = 1_000
STARTS = 5
FEW = 1_000


def sources(report: Report, _corpus: Corpus, scale: Scale) -> None:
    """Import, reconcile and start on one server; each row once, but the starts."""
    with (
        TemporaryDirectory(prefix="sitemapd-bench-") as folder,
        EmbeddedServer(Path(folder)) as running,
        connect(running.url, 60.0) as client,
    ):
        home = Path(folder)
        differences = min(DIFFERENCES, scale.source // 10)
        found = _run(running.url, home, "large", scale.source, "--reconcile", str(differences))
        imported(report, found)
        compares(report, found, differences)
        starts(report, running.url, client, home, scale)


def _run(url: str, home: Path, name: str, urls: int, *more: str) -> dict[str, float]:
    """Import into the site `name` in a process of its own; what that printed."""
    said = subprocess.run(
        [
            sys.executable, "-m", "tests.bench.import_million", "--redis", url, "--site", name,
            "--root", home / name, "--urls", str(urls), *more,
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


def starts(report: Report, url: str, client: redis.Redis, home: Path, scale: Scale) -> None:
    """From the start of a worker until the event that waits for it is in the files."""
    few = min(scale.source, FEW)
    _run(url, home, "small", few)
    pairs = []
    for turn in range(max(1, min(STARTS, scale.rounds // 6))):
        large, small = (_start_s(url, client, home, name, turn) for name in ("large", "small"))
        pairs.append((large, small))
    name = f"start of a worker until an event is published, {scale.source:,} URLs"
    report.add(compared(name, "s", pairs, f"with {few:,} URLs", at_most=1.15))


def _start_s(url: str, client: redis.Redis, home: Path, name: str, turn: int) -> float:
    root, config = home / name, home / f"{name}.toml"
    config.write_text(
        f'redis_url = "{url}"\n[sites.{name}]\nbase_url = "{import_million.BASE}"\n'
        f'web_root = "{root}"\ntokens = ["a token of some length"]\n',
        encoding="utf-8",
    )
    loc, _ = import_million.page(turn)
    Inbox(client, name).accept([Event("upsert", loc, lastmod=f"2024-01-{turn + 1:02}")])
    index = root / "sitemap.xml"
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
