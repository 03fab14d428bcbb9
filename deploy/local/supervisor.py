"""Keep a few child processes running until a signal stops them."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from pathlib import Path
from types import FrameType, TracebackType
from typing import Protocol, Self

from deploy.local.processes import replace
from shared.errors import ServerStartError
from shared.telemetry.logs import logger

BACKOFF_S = 0.1
BACKOFF_MOST_S = 5.0

_STEADY_S = 10.0
_LOOK_S = 0.5

log = logger("supervisor")


class Tended(Protocol):
    """Protocol of a supervised child."""

    name: str

    @property
    def pid(self) -> int | None:
        """The process id, None before the first start."""

    def launch(self) -> None:
        """Start the process, without waiting until it is ready."""

    def poll(self) -> int | None:
        """Return the exit status if it is not running, else None."""

    def stop(self) -> None:
        """Stop the process and all its children."""

    def output(self) -> str:
        """Return its output since the last start."""


class Signals:
    """Signal handling: SIGTERM, SIGINT and SIGHUP stop; they and SIGCHLD end a wait at once.

    A SIGHUP that is ignored remains ignored, as `nohup` requires. With `reloads` it is noted in
    `reload` instead, unless it came because the terminal of this process was closed.
    """

    def __init__(self, *, reloads: bool = False) -> None:
        self.stopping = self.reload = False
        self._reloads, self._on_terminal = reloads, _has_terminal()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def __enter__(self) -> Self:
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGCHLD]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._old = {number: signal.signal(number, self._note) for number in numbers}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._reader)
        os.close(self._writer)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP and self._reloads and _has_terminal() == self._on_terminal:
            self.reload = True
        else:
            self.stopping |= number != signal.SIGCHLD

    def wait(self, seconds: float) -> None:
        """Wait for a signal, at most `seconds`."""
        if select.select([self._reader], [], [], seconds)[0]:
            os.read(self._reader, 4096)


def _has_terminal() -> bool:
    """Return True if this process has a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


class Supervisor:
    """Restarts children that end, after 0.1 s, then twice as long each time up to 5 s, and waits
    out a full disk.

    Children are started in the order given and stopped in the reverse order.
    """

    def __init__(self, pids: Path) -> None:
        """`pids`: the file that lists each child's process id by name."""
        self._pids = pids
        self._children: list[Tended] = []
        self._due: dict[str, float] = {}
        self._begun: dict[str, float] = {}
        self._deaths: dict[str, int] = {}
        self._unlisted = ""

    def add(self, child: Tended, *, started: bool = False) -> None:
        """Start `child`, unless `started`, and supervise it from now on. Raises what its launch
        raises.
        """
        self._children.append(child)
        self._deaths[child.name] = 0
        if not started:
            child.launch()
        self._note_start(child)

    def tend(self) -> None:
        """Record children that ended, and restart those that are due."""
        if self._unlisted:
            self._write_pids()
        for child in self._children:
            status = child.poll()
            if status is None:
                continue
            now = time.monotonic()
            if child.name not in self._due:
                self._note_death(child, now, status)
            if now >= self._due[child.name]:
                self._restart(child)

    def dying(self, deaths: int) -> Tended | None:
        """Return a child that ended `deaths` times, each within 10 s of its start; None if there is
        none.
        """
        return next((c for c in self._children if self._deaths[c.name] >= deaths), None)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to the child `name`, if it runs."""
        for child in self._children:
            if child.name == name and child.pid is not None and child.poll() is None:
                os.kill(child.pid, number)

    def pause(self) -> float:
        """Return the seconds until the next restart is due, at most 0.5."""
        wait = min(self._due.values(), default=float("inf")) - time.monotonic()
        return max(0.0, min(_LOOK_S, wait))

    def stop(self) -> None:
        """Stop all children, the last started first."""
        while self._children:
            child = self._children.pop()
            child.stop()
            log.info("stopped", child=child.name)
            self._write_pids()

    def _note_death(self, child: Tended, now: float, status: int) -> None:
        if now - self._begun[child.name] > _STEADY_S:
            self._deaths[child.name] = 0
        wait = min(BACKOFF_MOST_S, BACKOFF_S * 2 ** self._deaths[child.name])
        self._deaths[child.name] += 1
        self._due[child.name] = now + wait
        if status:
            log.warning("died", child=child.name, pid=child.pid, status=status, restart_s=wait)
        else:
            log.info("ended", child=child.name, pid=child.pid, restart_s=wait)

    def _restart(self, child: Tended) -> None:
        try:
            child.launch()
        except (OSError, ServerStartError) as error:
            log.warning("restart failed", child=child.name, reason=str(error))
            self._note_death(child, time.monotonic(), -1)
            return
        self._due.pop(child.name)
        self._note_start(child)

    def _note_start(self, child: Tended) -> None:
        self._begun[child.name] = time.monotonic()
        log.info("started", child=child.name, pid=child.pid)
        self._write_pids()

    def _write_pids(self) -> None:
        """List the children for the guard, which ends the processes that this one leaves; retried
        while the disk is full.
        """
        listed = {child.name: child.pid for child in self._children}
        try:
            replace(self._pids, json.dumps(listed) + "\n")
        except OSError as error:
            if str(error) != self._unlisted:
                log.warning("children not listed", file=str(self._pids), reason=str(error))
            self._unlisted = str(error)
        else:
            if self._unlisted:
                log.info("children listed again", file=str(self._pids))
            self._unlisted = ""
