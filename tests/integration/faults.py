"""A process that can be cut off between any two of its steps, in this process.

A step is a command to Redis, its answer, or one operation on a file. After the cut nothing of the
cut off object reaches Redis or a directory any more, whatever its clean-up tries.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import redis
from redis.connection import UnixDomainSocketConnection

_FILE_STEPS = frozenset({"open", "os.rename", "os.remove", "os.utime", "os.chmod", "os.chown"})


class CutError(BaseException):
    """Here the process died. No handler of errors may see it as one."""


class Fuse:
    """Burns after `steps` steps, or `files` of those on files; `used` counts all that were done."""

    def __init__(self, steps: float = math.inf, files: float = math.inf) -> None:
        self._steps, self._files, self.used, self.burnt = steps, files, 0, False

    def step(self, files: int = 0) -> None:
        if self.burnt or self._steps <= 0 or self._files < files:
            self.burnt = True
            raise CutError
        self._steps -= 1
        self._files -= files
        self.used += 1


class _FusedConnection(UnixDomainSocketConnection):
    def __init__(self, *, fuse: Fuse, **options: Any) -> None:
        self._fuse = fuse
        super().__init__(**options)

    def send_packed_command(self, *args: Any, **options: Any) -> None:
        self._fuse.step()
        super().send_packed_command(*args, **options)

    def read_response(self, *args: Any, **options: Any) -> Any:
        answer = super().read_response(*args, **options)
        self._fuse.step()  # done, but nobody was told
        return answer


def fused_client(client: redis.Redis, fuse: Fuse) -> redis.Redis:
    """A client of the same server as `client` whose commands are steps of `fuse`."""
    options = client.connection_pool.connection_kwargs
    pool = redis.ConnectionPool(
        _FusedConnection, path=options["path"], socket_timeout=5, protocol=2, fuse=fuse
    )
    return redis.Redis(connection_pool=pool)


class Files:
    """Makes operations on files steps of a fuse, while one is set."""

    fuse: Fuse | None = None


def _audit(event: str, _: tuple[Any, ...]) -> None:
    if Files.fuse is not None and event in _FILE_STEPS:
        Files.fuse.step(files=1)


sys.addaudithook(_audit)
