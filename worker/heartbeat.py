"""The heartbeat of a worker: how it is doing goes out, what people want of it comes back."""

from __future__ import annotations

import os
import platform
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import redis

from shared.errors import StoreError
from shared.logs import logger
from shared.store.operations.worker_registry import (
    BusyThread,
    HeartbeatRecord,
    State,
    Wish,
    WorkerRegistry,
    own_version,
)
from shared.task_names import SWEEP_S
from worker.loops import Loop

REST_S = 2.0

_log = logger("worker")


class WorkDone(NamedTuple):
    """What this process has done since it started: events settled, files written."""

    events: int
    files: int


class Heartbeat:
    """Beats for the worker `name` in a thread of its own: a busy site must not make it look dead.

    What is wanted comes back with each beat: a change of mind about being quiet is passed on, and
    to stop is SIGTERM, which finishes what is at hand.
    """

    def __init__(
        self,
        client: redis.Redis,
        name: str,
        sites: Iterable[str],
        *,
        work: Callable[[], WorkDone],
        on_quiet: Callable[[bool], None],
    ) -> None:
        """`on_quiet` is told whether the worker is to be quiet, whenever that changes."""
        self._workers = WorkerRegistry(client)
        self._name, self._sites = name, tuple(sites)
        self._work, self._on_quiet = work, on_quiet
        self._started = time.time()
        self._threads = 1
        self._busy: dict[int, BusyThread] = {}
        self._offset: float | None = None
        self._quiet: bool | None = None
        self._hearing = threading.Lock()
        self._stopping = threading.Event()
        self.loop = Loop("heartbeat", first_s=SWEEP_S, longest_s=SWEEP_S)

    @property
    def quiet(self) -> bool:
        """Whether nothing new may be begun; asked of the store the first time. StoreError."""
        if self._quiet is None:
            self._hear(self._workers.wanted(self._name))
        return bool(self._quiet)

    @contextmanager
    def at(self, site: str) -> Iterator[None]:
        """This thread is busy with `site` meanwhile."""
        me = threading.get_ident()
        self._busy[me] = BusyThread(site=site, since=time.time())
        try:
            yield
        finally:
            self._busy.pop(me, None)

    def start(self, threads: int = 1) -> None:
        """Begin to beat, for a worker of so many threads."""
        self._threads = threads
        with self._hearing:
            self._quiet = None  # whoever is told of it may only listen from now on
        self.loop.start(self.beat, SWEEP_S, farewell=True)

    def stop(self) -> None:
        """Say once more that this worker lives, and that it is about to end."""
        self._stopping.set()
        self.loop.stop()

    def end(self) -> None:
        """Be gone, after `stop`: the others need not wait until the last beat has faded."""
        self.loop.join(REST_S)
        with suppress(StoreError):
            self._workers.forget(self._name)

    def beat(self) -> None:
        """Say how this worker is doing, and do what is wanted. StoreError if nobody listens."""
        state = self._quiet
        wanted, self._offset = self._workers.beat(self._name, self._look())
        self._hear(wanted)
        if self._quiet != state and state is not None:
            self._workers.beat(self._name, self._look())  # who asked is waiting for it

    def _look(self) -> HeartbeatRecord:
        state: State = "working"
        if self._stopping.is_set():
            state = "stopping"
        elif self._quiet:
            state = "quiet"
        done = self._work()
        return HeartbeatRecord(
            version=own_version(), python=platform.python_version(), host=socket.gethostname(),
            pid=os.getpid(), started=self._started, state=state, memory=_resident(),
            threads=self._threads, busy=tuple(self._busy.copy().values()), sites=self._sites,
            events=done.events, files=done.files, clock_offset=self._offset,
        )  # fmt: skip

    def _hear(self, wanted: Wish) -> None:
        with self._hearing:
            if wanted == "stop" and self.loop.started:
                # Taken back first, or the next life of this worker would end of it as well.
                self._workers.want(self._name, "quiet" if self._quiet else "work")
                if not self._stopping.is_set():
                    _log.warning("asked to stop", worker=self._name)
                    os.kill(os.getpid(), signal.SIGTERM)
                return
            quiet = wanted == "quiet"
            if quiet == self._quiet:
                return
            if quiet or self._quiet:
                _log.warning("quiet changed", worker=self._name, quiet=quiet)
            self._quiet = quiet
            self._on_quiet(quiet)


def _resident() -> int | None:
    """Bytes of memory that this process holds, None where there is no /proc."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
