"""Heartbeat of a worker: send its state, receive the state that an administrator wants."""

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
from shared.store.operations.worker_registry import (
    BusyThread,
    HeartbeatRecord,
    State,
    Wish,
    WorkerRegistry,
    own_version,
)
from shared.task_names import SWEEP_S
from shared.telemetry.logs import logger
from worker.loops.loop import Loop

REST_S = 2.0

_log = logger("worker")


class WorkDone(NamedTuple):
    """Work of this process since it started: events processed, files written."""

    events: int
    files: int


class Heartbeat:
    """Sends the heartbeats of the worker `name` from a thread of its own, so that a busy site does
    not make it look dead.

    Each heartbeat returns the wanted state. A change to quiet or back is passed on; `stop` sends
    SIGTERM to this process, which finishes the work in progress.
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
        """Create a heartbeat; `on_quiet` is called when the worker becomes quiet (True) or works
        again (False).
        """
        self._workers = WorkerRegistry(client)
        self._name, self.sites = name, tuple(sites)
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
        """Return True if the worker takes no new work; read from the store the first time.

        Raises StoreError.
        """
        if self._quiet is None:
            self._obey(self._workers.wanted(self._name))
        return bool(self._quiet)

    @property
    def all_others_busy(self) -> bool:
        """Return True if the worker has no thread at rest besides the one that asks."""
        return len(self._busy) + 1 >= self._threads

    @contextmanager
    def at(self, site: str) -> Iterator[None]:
        """Record that this thread is busy with `site` within the block."""
        me = threading.get_ident()
        self._busy[me] = BusyThread(site=site, since=time.time())
        try:
            yield
        finally:
            self._busy.pop(me, None)

    def start(self, threads: int = 1) -> None:
        """Start the heartbeats of a worker with so many `threads`."""
        self._threads = threads
        with self._hearing:
            self._quiet = None  # `on_quiet` may not have been ready for a call before this
        self.loop.start(self.beat, SWEEP_S, farewell=True)

    def stop(self) -> None:
        """Send a last heartbeat, which says that the worker is stopping, and end the loop."""
        self._stopping.set()
        self.loop.stop()

    def end(self) -> None:
        """Delete the worker's record, after `stop`, so that others need not wait for its expiry."""
        self.loop.join(REST_S)
        with suppress(StoreError):
            self._workers.forget(self._name)

    def beat(self) -> None:
        """Send the state of this worker and apply the wanted one. Raises StoreError."""
        state = self._quiet
        wanted, self._offset = self._workers.beat(self._name, self._look())
        self._obey(wanted)
        if self._quiet != state and state is not None:
            self._workers.beat(self._name, self._look())  # the administrator waits for it

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
            threads=self._threads, busy=tuple(self._busy.copy().values()), sites=tuple(self.sites),
            events=done.events, files=done.files, clock_offset=self._offset,
        )  # fmt: skip

    def _obey(self, wanted: Wish) -> None:
        with self._hearing:
            if wanted == "stop" and self.loop.started:
                # Withdrawn first, or the restarted worker would stop as well.
                self._workers.want(self._name, "quiet" if self._quiet else "work")
                if not self._stopping.is_set():
                    _log.warning("stop requested", worker=self._name)
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
    """Return the resident memory of this process in bytes, None without /proc."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
