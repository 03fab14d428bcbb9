"""F1 to F5: SIGKILL of every kind of process, under load, at random moments (N1)."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress

from tests.faults.deployment import WORKERS
from tests.faults.parts import until
from tests.faults.run import Run

SHARES = {"worker": 0.4, "web": 0.2, "publisher": 0.2, "redis": 0.15, "schedule": 0.05}
"""RELIABILITY N1: of 1,000 kills."""
IN_FLIGHT = 0.25
"""How many of the kills of a worker wait until events are in its hands."""


def victims(kills: int) -> list[str]:
    """So many names of kinds, in their shares."""
    found = [kind for kind, share in SHARES.items() for _ in range(round(kills * share))]
    return found[:kills] + ["worker"] * (kills - len(found))


def kill_all_kinds(run: Run, kills: int) -> None:
    """So many kills over all kinds, each between 20 and 120 events after the one before; a quarter
    of those of a worker while it holds events (IN_FLIGHT).
    """
    order = victims(kills)
    run.chance.shuffle(order)
    kill_in_order(run, order)
    run.notes.append(", ".join(f"{kind} {order.count(kind)}" for kind in SHARES))


def kill_in_order(run: Run, kinds: Sequence[str]) -> None:
    """One kill of each of these kinds, which may repeat."""
    for kind in kinds:
        run.progress(run.chance.randrange(20, 120))
        _KILL[kind](run)
        run.injected += 1


def kill_in_flight(run: Run) -> bool:
    """Kill all workers while one of them holds events that it was given and has not settled.

    False if none was seen to hold any: all that was accepted is settled.
    """
    held = run.waits_for(run.system.in_flight)
    for name in WORKERS if held else ():
        run.system.parts[name].kill()
    return held


def kill_workers(run: Run, kills: int) -> None:
    """So many kills of a worker, as plain_celery does to its own."""
    for _ in range(kills):
        run.progress(run.chance.randrange(20, 120))
        _worker(run)
        run.injected += 1


def _worker(run: Run) -> None:
    """The one that has been up longest, so that it is at work and not only starting."""
    if run.chance.random() < IN_FLIGHT and kill_in_flight(run):
        return
    workers = [run.system.parts[name] for name in WORKERS]
    until(min(workers, key=lambda part: part.since).kill, "a worker runs and can be killed")


def _publisher(run: Run) -> None:
    """All workers, while a temporary file is in the web root: in the middle of a publish."""
    run.publishing()
    for name in WORKERS:
        run.system.parts[name].kill()


def _web(run: Run) -> None:
    """The process that listens or one that it started."""
    part = run.system.parts["web"]

    def killed() -> bool:
        with suppress(ProcessLookupError):
            os.kill(run.chance.choice(part.pids()), signal.SIGKILL)
            return True
        return False

    until(killed, "the web server runs and can be killed")


def _redis(run: Run) -> None:
    until(run.system.parts["redis"].kill, "Redis runs and can be killed")


def _schedule(run: Run) -> None:
    until(run.system.parts["schedule"].kill, "the schedule runs and can be killed")


_KILL = {
    "worker": _worker,
    "publisher": _publisher,
    "web": _web,
    "redis": _redis,
    "schedule": _schedule,
}
