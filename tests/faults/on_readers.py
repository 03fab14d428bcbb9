"""F25: crawlers fetch through the nginx that is shipped while files are replaced all the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.faults.deployment import Options
from tests.faults.parts import until
from tests.faults.run import Case, Run
from tests.system.nginx import Nginx

READS = 50_000
"""RELIABILITY N3: 100,000 GETs, half of them of each form."""
LOOK_S, MOST_S = 60, 900


def _prepare(form: str) -> Callable[[Path, ExitStack], Options]:
    def prepare(_directory: Path, _stack: ExitStack) -> Options:
        return Options(interval=0, form=form)

    return prepare


def _reads(run: Run) -> int:
    return run.reads["shard"] + run.reads["index"]


def _crawl(run: Run) -> None:
    """Publishing as fast as it goes, and a reader that fetches as fast as it can."""
    nginx = Nginx(run.system.home / "nginx", run.system.root, f"127.0.0.1:{run.system.port}")
    nginx.start()
    try:
        until((run.system.root / "sitemap.xml").exists, "there is an index")
        before = run.system.publishes()
        deadline = time.monotonic() + MOST_S
        while _reads(run) < READS and time.monotonic() < deadline:
            run.watch(nginx.address)
            time.sleep(LOOK_S)
            run.look_away()
    finally:
        nginx.stop()
    seconds, reads = run.reads["seconds"], _reads(run)
    run.injected = run.system.publishes() - before
    run.notes.append(f"{reads:,} GETs, {reads / seconds:.0f}/s")
    run.expect(reads >= READS, f"only {reads} GETs in {seconds} s")


CASES = [
    Case("F25", "read through nginx, xml", _crawl, _prepare("xml"), pace=0.01),
    Case("F25", "read through nginx, encoded", _crawl, _prepare("encoded"), pace=0.01),
]
