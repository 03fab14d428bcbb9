"""A CMS as a process: started, waited for, and ended with its children."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import pytest

from tests.system.driver import wait_until


def free_port() -> int:
    """A port nobody listens on, on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Program:
    """One server with its children, in a process group of their own; `log` holds what they say."""

    def __init__(
        self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str], log: Path
    ) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command, cwd=cwd, env={**os.environ, **env}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def answers(self, url: str, seconds: float = 180) -> None:
        """Wait until `url` answers 200."""

        def up() -> bool:
            if self.process.poll() is not None:
                pytest.fail(f"ended: {self.tail()}")
            try:
                return httpx.get(url, timeout=10).status_code == 200
            except httpx.TransportError:
                return False

        try:
            wait_until(up, f"{url} answers", seconds)
        except BaseException:
            self.end()
            print(self.tail())
            raise

    def tail(self) -> str:
        """What it said last."""
        return self.log.read_text(errors="replace")[-3000:]

    def end(self) -> None:
        """End it and its children."""
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(30)
