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

SECONDS = 120
GETS_PER_S = 500
"""RELIABILITY N3: at that rate and more, at least 100,000 over both forms."""


def _prepare(form: str) -> Callable[[Path, ExitStack], Options]:
    def prepare(_directory: Path, _stack: ExitStack) -> Options:
        return Options(interval=0, form=form)

    return prepare


def _publishes(run: Run) -> int:
    return int(run.system.redis("HGET", "{demo}:counters", "publishes") or 0)


def _crawl(run: Run) -> None:
    """Publishing as fast as it goes, and a reader that fetches as fast as it can."""
    nginx = Nginx(run.system.home / "nginx", run.system.root, f"127.0.0.1:{run.system.port}")
    nginx.start()
    try:
        until((run.system.root / "sitemap.xml").exists, "there is an index")
        run.watch(nginx.address)
        before = _publishes(run)
        time.sleep(SECONDS)
        run.look_away()
    finally:
        nginx.stop()
    seconds, reads = run.reads["seconds"], run.reads["shard"] + run.reads["index"]
    run.injected = _publishes(run) - before
    run.notes.append(f"{reads:,} GETs, {reads / seconds:.0f}/s")
    run.expect(reads >= SECONDS * GETS_PER_S, f"only {reads} GETs in {seconds} s")


CASES = [
    Case("F25", "read through nginx, xml", _crawl, _prepare("xml"), pace=0.01),
    Case("F25", "read through nginx, encoded", _crawl, _prepare("encoded"), pace=0.01),
]
