"""Faults of Redis: F5, F7, F20, F22."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import NamedTuple

from tests.faults.deployment import WORKERS
from tests.faults.ledger import Book
from tests.faults.parts import until
from tests.faults.run import Case, Run

ANSWER_S = 3.0
"""RELIABILITY N5: any fault of Redis is answered within that."""


def _hung(run: Run) -> None:
    """Stopped for 4 s at a time: no answer takes longer than promised."""
    redis = run.system.parts["redis"]
    for _ in range(5):
        run.progress(run.chance.randrange(20, 100))
        redis.tell(signal.SIGSTOP)
        run.injected += 1
        time.sleep(4)
        redis.tell(signal.SIGCONT)
    run.notes.append(f"slowest answer {run.longest:.1f} s")
    run.expect(run.longest <= ANSWER_S, f"an answer took {run.longest:.1f} s")


def _full_memory(run: Run) -> None:
    """No room for one more event: 503, workers wait and do not die."""
    starts = {name: run.system.parts[name].starts for name in WORKERS}
    for _ in range(5):
        run.progress(run.chance.randrange(20, 100))
        run.system.redis("CONFIG", "SET", "maxmemory", "1mb")
        run.injected += 1
        run.refused(20)
        time.sleep(2)
        run.system.redis("CONFIG", "SET", "maxmemory", "0")
    died = [name for name in WORKERS if run.system.parts[name].starts != starts[name]]
    run.expect(not died, f"{died} died of a full Redis")


def _killed_in_rewrite(run: Run) -> None:
    """SIGKILL while the log is rewritten."""
    redis = run.system.parts["redis"]
    for _ in range(10):
        run.progress(run.chance.randrange(20, 100))
        run.system.redis("BGREWRITEAOF")
        time.sleep(run.chance.random() * 0.02)
        redis.kill()
        run.injected += 1
        until(run.system.ready, "Redis is back", 10)


def _cut_tail(run: Run) -> None:
    """The log ends in the middle of a command that nobody was told of, as after a crash."""
    redis = run.system.parts["redis"]
    for _ in range(5):
        run.progress(run.chance.randrange(20, 100))
        redis.end(signal.SIGKILL)
        (log,) = (run.system.data / "appendonlydir").glob("*.incr.aof")
        with log.open("ab") as file:
            file.write(b"*3\r\n$4\r\nXADD\r\n$12\r\n{demo}:in")
        run.injected += 1
        redis.wanted = True
        until(run.system.ready, "Redis is back", 10)


class Kept(NamedTuple):
    """A copy of Redis's files, and of the ledger as it was then."""

    path: Path
    ledger: Book


def _keep(run: Run) -> Kept:
    """Back up a quiet system."""
    run.rest()
    run.converge()
    path, redis = run.system.home / "kept", run.system.parts["redis"]
    redis.end(signal.SIGTERM)
    shutil.copytree(run.system.data, path)
    redis.wanted = True
    until(run.system.ready, "Redis is back", 10)
    return Kept(path, run.ledger.book())


def _put_back(run: Run, kept: Kept) -> None:
    """Restore the back-up; what was sent since is gone, and known to be."""
    redis = run.system.parts["redis"]
    redis.end(signal.SIGKILL)
    shutil.rmtree(run.system.data)
    shutil.copytree(kept.path, run.system.data)
    redis.wanted = True
    until(run.system.ready, "Redis is back", 10)
    run.ledger.put_back(kept.ledger)


def _refused(run: Run, before: dict[str, bytes], alarm: str) -> None:
    """Whether events that come in now leave the files alone and raise `alarm`."""
    run.send()
    run.rest()
    until(lambda: alarm in _worker_logs(run), "the alarm is raised")
    until(lambda: not run.system.redis("XLEN", "{demo}:inbox"), "the events are applied")
    run.expect(_contents(run.system.root) == before, "another state was published over the files")
    said = "rebuild --site demo --adopt" in _worker_logs(run)
    run.expect(said, "the alarm does not name the remedy")


def _flushed(run: Run) -> None:
    """Emptied by somebody, then restored from a back-up of just before."""
    kept = _keep(run)
    before = _contents(run.system.root)
    run.system.redis("FLUSHALL")
    run.injected += 1
    _refused(run, before, "was written from another state")
    _put_back(run, kept)
    run.send()


def _older(run: Run) -> None:
    """Restored from a back-up that is older than the files, then adopted as the alarm says."""
    kept = _keep(run)
    run.send()
    run.progress(100)
    run.rest()
    run.converge()
    before = _contents(run.system.root)
    _put_back(run, kept)
    run.injected += 1
    _refused(run, before, "or from a newer one")
    run.look_away()  # adopting an older state is going back, on demand
    adopted = run.system.command("rebuild", "--site", "demo", "--adopt")
    run.expect(adopted.returncode == 0, f"rebuild --adopt: {adopted.stderr[-300:]}")
    run.watch()
    run.send()


def _worker_logs(run: Run) -> str:
    return "".join(map(run.system.log, WORKERS))


def _contents(root: Path) -> dict[str, bytes]:
    return {name: (root / name).read_bytes() for name in os.listdir(root) if name != ".sitemapd"}


CASES = [
    Case("F20", "Redis hangs, 4 s each", _hung),
    Case("F7", "Redis out of memory", _full_memory),
    Case("F5", "Redis killed while it rewrites its log", _killed_in_rewrite),
    Case("F5", "the tail of Redis's log is cut", _cut_tail),
    Case("F22", "Redis emptied, then restored", _flushed),
    Case("F22", "Redis restored from an old back-up", _older),
]
