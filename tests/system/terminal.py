"""A program on a terminal of its own, as a person sees and types it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.system.driver import SITEMAPD

UNTIL_S = 30.0


class Terminal:
    """A program on a terminal of some columns, and all that it printed."""

    def __init__(self, command: list[str | Path], directory: Path, columns: int = 120) -> None:
        self._ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {
            name: text
            for name, text in os.environ.items()
            if name not in {"SITEMAPD_HOME", "COLUMNS"}
        }
        environment |= {"TERM": "dumb", "PATH": f"{SITEMAPD.parent}:{os.environ['PATH']}"}
        self.process = subprocess.Popen(
            command, stdin=its, stdout=its, stderr=its, cwd=directory, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(its)
        self.said = ""

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, pattern: str) -> re.Match[str]:
        """Read until what was printed has a match of `pattern`; it or a fault."""
        deadline = time.monotonic() + UNTIL_S
        while not (found := re.search(pattern, self.said)):
            assert time.monotonic() < deadline, f"no {pattern} in {self.said!r}"
            if select.select([self._ours], [], [], 0.5)[0]:
                self._read()
        return found

    def _read(self) -> None:
        try:
            read = os.read(self._ours, 65_536)
        except OSError:  # Linux's way to say that the other end is closed
            pytest.fail(f"ended: {self.said}")
        self.said += read.decode().replace("\r\n", "\n")

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.interrupt()
        os.close(self._ours)
