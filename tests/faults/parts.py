"""One process of the system under test: started again at once when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from tests.waiting import DEADLINE_S, pause

POLL_S = 0.02


LONGEST = 10
"""Times `seconds` that are waited at most, whatever moves."""


def until(
    holds: Callable[[], object],
    what: str,
    seconds: float = DEADLINE_S,
    moves: Callable[[], object] = lambda: None,
) -> float:
    """Wait for `holds`: the seconds it took. TimeoutError naming `what`.

    The `seconds` begin again whenever `moves` gives something else: how long all of it takes
    depends on the machine, and work that makes no progress is what is wrong.
    """
    begun = moved = time.monotonic()
    before = moves()
    while True:
        looked = time.monotonic()
        if holds():
            return time.monotonic() - begun
        now, found = time.monotonic(), moves()
        if found != before:
            before, moved = found, now
        if now - moved > seconds or now - begun > LONGEST * seconds:
            left = "" if found is None else f"; left: {found}"
            raise TimeoutError(f"not within {seconds} s: {what}{left}")
        time.sleep(max(POLL_S, pause(0, now - looked)))


class Part:
    """One process and what it is started with."""

    def __init__(self, name: str, argv: list[str], env: Mapping[str, str], log: Path) -> None:
        self.name, self.argv, self.env = name, argv, dict(env)
        self.starts = 0
        self.wanted = False
        self.since = 0.0
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def tend(self) -> None:
        """Start it if it should run and does not."""
        if self.wanted and (self._process is None or self._process.poll() is not None):
            if self._process is not None:
                self._kill_group(self._process.pid)
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env=self.env, start_new_session=True,
                )  # fmt: skip
            self.starts += 1
            self.since = time.monotonic()

    @property
    def pid(self) -> int:
        """Its process id; ProcessLookupError while it is down."""
        process = self._process
        if process is None or process.poll() is not None:
            raise ProcessLookupError(self.name)
        return process.pid

    def pids(self) -> list[int]:
        """The process and its children."""
        found = [self.pid]
        with suppress(OSError):
            for task in Path(f"/proc/{found[0]}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        return found

    def tell(self, number: int) -> None:
        """Send a signal to the whole of it."""
        os.killpg(self.pid, number)

    def kill(self) -> bool:
        """SIGKILL; False if it was down."""
        try:
            self.tell(signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def end(self, number: int = signal.SIGTERM, seconds: float = 60) -> int:
        """Have it end and stay down: its exit status."""
        self.wanted = False
        process = self._process
        if process is None:
            return 0
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
        try:
            return process.wait(seconds)
        finally:
            self._kill_group(process.pid)

    def restart(self) -> None:
        """Have it end in its own way and wait until it is started again."""
        starts = self.starts
        self.tell(signal.SIGTERM)
        until(lambda: self.starts > starts, f"{self.name} restarts", 60)

    @staticmethod
    def _kill_group(pid: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
