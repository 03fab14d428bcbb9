"""Hosts are cut off, healed, and upgraded one by one while events come in: lag of each phase and
loss at each of the two hosts with a web root. `python -m tests.scale.partitions [SECONDS]`, as
root; a table, and JSON as its last line.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

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


def kill(hosts: Hosts, seconds: float) -> None:
    """The only worker of a host, which is started anew."""
    worker = hosts.parts[WORKERS[0]]
    starts = worker.starts
    worker.kill()
    until(lambda: worker.starts > starts, "it is started", 60)
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
    """The master with a sentinel, a web and a host of the files, on the other side of a split."""
    former = hosts.master()
    side = [former, SENTINELS[0], WEBS[0], FRONTS[0]]
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
    "a worker is killed": kill,
    "a web is cut off": cut(WEBS[0]),
    "a host of files is cut off": cut(FRONTS[0]),
    "the other one is cut off": cut(FRONTS[1]),
    "a sentinel is cut off": cut(SENTINELS[0]),
    "the master is cut off": cut_the_master,
    "the network is split": cut_a_side,
    "rolling upgrade": upgrade,
}


class Result(NamedTuple):
    """Figures of each phase; pages that were acknowledged and are not listed by a host; whether the
    files of the hosts are equal, and what `verify` has to say of those of each.
    """

    phases: dict[str, Figures]
    lost: dict[str, list[int]]
    equal: bool
    wrong: dict[str, str]


def run(home: Path, seconds: float, pace: float = PACE_S) -> Result:
    """Let all phases pass."""
    spans = {}
    named = {ADDRESSES[name]: name for name in FRONTS}
    with Hosts(home) as hosts:
        traffic = Traffic([*named], hosts.token, pace)
        traffic.start()
        until(lambda: all(len(seen) > 5 for seen in traffic.seen.values()), "pages are seen", 60)
        for name, phase in PHASES.items():
            begun = time.monotonic()
            phase(hosts, seconds)
            spans[name] = (begun, time.monotonic())
            with suppress(TimeoutError):  # what this phase held up is not the next one's
                until(lambda: traffic.seen_until(spans[name][1]), "caught up", 30)  # noqa: B023
        traffic.stop()
        with suppress(TimeoutError):
            until(traffic.everything_seen, "all is seen", 30,
                  lambda: [len(seen) for seen in traffic.seen.values()])  # fmt: skip
        with suppress(TimeoutError):
            until(lambda: hosts.files(FRONTS[0]) == hosts.files(FRONTS[1]), "equal files", 30)
        lost = {named[front]: sorted(pages) for front, pages in traffic.lost().items()}
        equal = hosts.files(FRONTS[0]) == hosts.files(FRONTS[1])
        wrong = {name: said for name in FRONTS if (said := hosts.verifies(name))}
        traffic.end()
    phases = {name: traffic.figures(*span) for name, span in spans.items()}
    for figures in phases.values():
        for front in [*figures.seen]:
            figures.seen[named[front]] = figures.seen.pop(front)
    return Result(phases, lost, equal, wrong)


def table(phases: Mapping[str, Figures]) -> Iterator[str]:
    """The lines of a table of all phases."""
    heads = ["events", "repeated", "202 p50", "202 p99"]
    heads += [f"{name} {what}" for name in FRONTS for what in ("p50", "p99", "most")]
    width = max(map(len, phases))
    yield "  ".join([" " * width, *(f"{head:>12}" for head in heads)])
    for name, it in phases.items():
        values = [it.answered_p50, it.answered_p99, *(x for host in FRONTS for x in it.seen[host])]
        shown = [f"{it.events:>12}", f"{it.repeated:>12}", *(f"{value:>12.3f}" for value in values)]
        yield "  ".join([f"{name:{width}}", *shown])


def main() -> None:
    """Measure and print."""
    isolated("tests.scale.partitions", *sys.argv[1:])
    seconds = float(sys.argv[1]) if sys.argv[1:] else 20.0
    with tempfile.TemporaryDirectory(prefix="sitemapd-hosts-") as home:
        found = run(Path(home), seconds)
    print("\n".join(table(found.phases)))
    for name, lost in found.lost.items():
        print(f"{name}: acknowledged and not listed: {len(lost)} {lost[:10]}")
    print(f"files of both hosts equal: {found.equal}; wrong by `verify`: {found.wrong}")
    phases = {name: figures._asdict() for name, figures in found.phases.items()}
    print(json.dumps(found._asdict() | {"phases": phases}))
    sys.exit(1 if any(found.lost.values()) or found.wrong or not found.equal else 0)


if __name__ == "__main__":
    main()
