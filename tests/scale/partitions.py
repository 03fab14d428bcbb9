"""Hosts are cut off, healed, and upgraded one by one while events come in: lag and loss of each
phase. `python -m tests.scale.partitions [SECONDS]`, as root; a table, and JSON as its last line.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.faults.parts import until
from tests.scale.container_hosts import (
    ADDRESSES,
    FRONTS,
    SENTINELS,
    STORES,
    WEBS,
    WORKERS,
    Hosts,
)
from tests.scale.lag import Figures, Traffic
from tests.scale.namespaces import isolated

PACE_S = 0.05
Phase = Callable[[Hosts, float], object]


def calm(_hosts: Hosts, seconds: float) -> None:
    time.sleep(seconds)


def cut(name: str) -> Phase:
    """A phase in which one host is cut off for most of the time."""

    def run(hosts: Hosts, seconds: float) -> None:
        hosts.network.cut(name)
        time.sleep(seconds * 0.7)
        hosts.network.heal(name)
        time.sleep(seconds * 0.3)

    return run


def cut_the_master(hosts: Hosts, seconds: float) -> None:
    """The master alone, until another is named; healed, it follows."""
    former = hosts.master()
    hosts.network.cut(former)
    until(lambda: hosts.master() not in {former, ""}, "another master is named", 60)
    time.sleep(seconds * 0.3)
    hosts.network.heal(former)
    until(lambda: hosts.followers() == 2, "the former master follows", 60)


def cut_a_side(hosts: Hosts, seconds: float) -> None:
    """The master with a sentinel, a web and a worker, on the other side of a split."""
    former = hosts.master()
    side = [former, SENTINELS[0], WEBS[0], WORKERS[0]]
    for name in side:
        hosts.network.cut(name)
    until(lambda: hosts.master() not in {former, ""}, "another master is named", 60)
    time.sleep(seconds * 0.3)
    for name in side:
        hosts.network.heal(name)
    until(lambda: hosts.followers() == 2, "the former master follows", 60)


def upgrade(hosts: Hosts, _seconds: float) -> None:
    """Each part is ended by SIGTERM and started again, which a master does once its replicas have
    all that it has. SENTINEL FAILOVER does not wait for them.
    """
    for name in (*WEBS, *WORKERS, "schedule", *FRONTS, *SENTINELS):
        hosts.parts[name].restart()
        if name in WEBS:
            until(lambda name=name: hosts.answers(name), f"{name} takes events", 60)  # type: ignore[misc]
    for name in STORES:
        hosts.parts[name].restart()
        until(lambda: hosts.followers() == 2, f"two follow after {name}", 60)


PHASES: dict[str, Phase] = {
    "calm": calm,
    "a worker is cut off": cut(WORKERS[0]),
    "a web is cut off": cut(WEBS[0]),
    "a host of the files is cut off": cut(FRONTS[0]),
    "a sentinel is cut off": cut(SENTINELS[0]),
    "the master is cut off": cut_the_master,
    "the network is split": cut_a_side,
    "rolling upgrade": upgrade,
}


def run(home: Path, seconds: float, pace: float = PACE_S) -> tuple[dict[str, Figures], set[int]]:
    """The figures of each phase, and the pages that were acknowledged and are not listed."""
    spans = {}
    with Hosts(home) as hosts:
        traffic = Traffic([ADDRESSES[name] for name in FRONTS], hosts.token, pace)
        traffic.start()
        until(lambda: len(traffic.seen) > 5, "pages are seen", 60)
        for name, phase in PHASES.items():
            begun = time.monotonic()
            phase(hosts, seconds)
            spans[name] = (begun, time.monotonic())
        traffic.stop()
        with suppress(TimeoutError):
            until(traffic.everything_seen, "all is seen", 30, lambda: len(traffic.seen))
        lost = traffic.lost()
        traffic.end()
    return {name: traffic.figures(*span) for name, span in spans.items()}, lost


def main() -> None:
    """Measure and print."""
    isolated("tests.scale.partitions", *sys.argv[1:])
    seconds = float(sys.argv[1]) if sys.argv[1:] else 20.0
    with tempfile.TemporaryDirectory(prefix="sitemapd-hosts-") as home:
        found, lost = run(Path(home), seconds)
    width = max(map(len, found))
    print(f"{'':{width}}  {'  '.join(f'{name:>12}' for name in Figures._fields)}")
    for name, figures in found.items():
        shown: list[Any] = [f"{x:.3f}" if isinstance(x, float) else x for x in figures]
        print(f"{name:{width}}  {'  '.join(f'{x:>12}' for x in shown)}")
    print(f"acknowledged and not listed: {len(lost)} {sorted(lost)[:10]}")
    print(json.dumps({name: figures._asdict() for name, figures in found.items()}))
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
