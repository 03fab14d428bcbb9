"""How many acknowledged events plain Celery loses (RELIABILITY 0, finding 1): our baseline.

    python -m tests.faults.plain_celery --kills 80 --seed 1    # SIGKILL the worker, at random
    python -m tests.faults.plain_celery --drops 5              # break that many replies to BRPOP

The worker is one process that handles one task at a time and is started anew whenever it ends; the
store flushes every write. An event is sent when `.delay()` has returned; it is lost if nothing is
left in the queue, nothing unacknowledged, nothing happens for three visibility timeouts, and it
never ran.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple, Self

from kombu.exceptions import OperationalError

from tests.faults.plain_celery_app import QUEUE, RUNS, VISIBILITY_S, create
from tests.faults.tools.needs import ToolError
from tests.faults.tools.proxy import Proxy
from tests.faults.tools.store import Store

ROOT = Path(__file__).resolve().parents[2]
HEADER = "| Celery on | fault | times | sent | done | lost | doubled | seconds |"
_UNACKED = "unacked"
_BACKLOG = 100  # the worker never waits for the sender
_BUSY_S = 0.5  # it is killed within this time of its first task
_DRAIN_S = 90.0
_START_S = 30.0
_QUIET_S = 3 * VISIBILITY_S


class Result(NamedTuple):
    """What became of the events of one run."""

    store: str
    fault: str
    times: int
    sent: int
    done: int
    lost: int
    doubled: int
    seconds: float

    def row(self) -> str:
        """A line of a table in Markdown, below HEADER."""
        return f"| {' | '.join(map(str, self[:-1]))} | {self.seconds:.0f} |"


class Worker:
    """A Celery worker that a thread starts anew whenever it ends."""

    def __init__(self, broker: str, store: Store, log: Path) -> None:
        self._environment = {
            **os.environ, "PLAIN_BROKER": broker, "PLAIN_STORE": store.socket,
        }  # fmt: skip
        self._log, self._over = log, threading.Event()
        self._thread = threading.Thread(target=self._supervise)

    def __enter__(self) -> Self:
        self._start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.process.kill()
        self._thread.join()
        self.process.kill()
        self.process.wait()

    def kill(self) -> None:
        """SIGKILL; return when another one has been started."""
        victim = self.process
        victim.kill()
        while self.process is victim:
            time.sleep(0.001)

    def _start(self) -> None:
        with open(self._log, "ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "celery", "-A", "tests.faults.plain_celery_app", "worker",
                    "--pool", "solo", "--concurrency", "1", "--loglevel", "WARNING",
                    "--without-gossip", "--without-mingle", "--without-heartbeat",
                ],
                cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def _supervise(self) -> None:
        while not self._over.is_set():
            self.process.wait()
            if not self._over.is_set():
                self._start()


class Sender:
    """Sends events and keeps a ledger of those whose sending was acknowledged."""

    def __init__(self, store: Store, seed: int) -> None:
        self._app = create(f"redis+socket://{store.socket}", "")
        self._put = self._app.tasks["put"]
        self._store, self._chance, self._numbers = store, random.Random(seed), itertools.count(1)
        self.acked: set[int] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_sending)

    def send(self) -> None:
        """One event about one of a hundred pages."""
        number = next(self._numbers)
        try:
            self._put.delay(number, f"/{self._chance.randrange(100)}")
        except OperationalError:
            return
        self.acked.add(number)

    def _keep_sending(self) -> None:
        while not self._over.is_set():
            if self._store.client.llen(QUEUE) >= _BACKLOG:
                time.sleep(0.005)
                continue
            for _ in range(20):
                self.send()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._app.pool.force_close_all()  # type: ignore[attr-defined]
        self._app.close()


def _done(store: Store) -> int:
    return int(store.client.hlen(RUNS))


def _await_more(store: Store, worker: Worker) -> None:
    """Return when the worker that runs now has done a task."""
    before, deadline = _done(store), time.monotonic() + _START_S
    while _done(store) == before:
        if time.monotonic() > deadline:
            raise ToolError(f"the worker {worker.process.pid} does nothing for {_START_S:.0f} s")
        time.sleep(0.005)


def _drain(store: Store, quiet: float = _QUIET_S, least: int = 0) -> None:
    """Return when nothing is left and nothing has happened for `quiet` seconds, and `least` events
    at least are done. ToolError if that does not come about within 90 s.
    """
    deadline = time.monotonic() + _DRAIN_S
    state: tuple[int, ...] = ()
    since = time.monotonic()
    while time.monotonic() - since < quiet:
        client = store.client
        now = (client.llen(QUEUE), client.hlen(_UNACKED), _done(store))
        if now != state or any(now[:2]) or now[2] < least:
            state, since = now, time.monotonic()
        if time.monotonic() > deadline:
            raise ToolError(f"not quiet within {_DRAIN_S:.0f} s: {now} queued, unacked, done")
        time.sleep(0.05)


def _result(store: Store, sender: Sender, fault: str, times: int, began: float) -> Result:
    runs = {int(number): int(count) for number, count in store.client.hgetall(RUNS).items()}
    return Result(
        store.name, fault, times, len(sender.acked), len(sender.acked & runs.keys()),
        len(sender.acked - runs.keys()), sum(count > 1 for count in runs.values()),
        time.monotonic() - began,
    )  # fmt: skip


def kill(kills: int, seed: int, directory: Path) -> Result:
    """SIGKILL the worker `kills` times while events are sent, at moments that `seed` decides."""
    began, chance = time.monotonic(), random.Random(seed)
    with Store(directory) as store:
        broker = f"redis+socket://{store.socket}"
        with Worker(broker, store, directory / "worker.log") as worker:
            with (sender := Sender(store, seed)):
                for _ in range(kills):
                    _await_more(store, worker)
                    time.sleep(chance.uniform(0, _BUSY_S))
                    worker.kill()
            _drain(store)
        return _result(store, sender, "SIGKILL worker", kills, began)


def drop(drops: int, events: int, directory: Path, quiet: float = _QUIET_S) -> Result:
    """Break the worker's connection before `drops` of its replies to BRPOP; nobody is killed."""
    began = time.monotonic()
    with Store(directory) as store, Proxy(store.socket) as proxy:
        proxy.abort_on(b"*2\r\n$%d\r\n%s\r\n" % (len(QUEUE), QUEUE.encode()), drops)
        with contextlib.closing(Sender(store, seed=1)) as sender:
            for _ in range(events):
                sender.send()
        with Worker(f"redis://{proxy.address}", store, directory / "worker.log"):
            _drain(store, quiet, least=events - drops)
        return _result(store, sender, "BRPOP reply dropped", proxy.dropped, began)


def main() -> int:
    """The command: one row of a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.plain_celery")
    parser.add_argument("--kills", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drops", type=int, default=0, help="instead of kills: replies to break")
    parser.add_argument("--events", type=int, default=20, help="how many to send with --drops")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plain-celery-") as name:
        if asked.drops:
            result = drop(asked.drops, asked.events, Path(name))
        else:
            result = kill(asked.kills, asked.seed, Path(name))
    print(result.row())
    return 0


if __name__ == "__main__":
    sys.exit(main())
