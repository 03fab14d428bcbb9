"""The embedded Redis-compatible server, started as a child process on a unix socket, without data
loss.

Guarantees: every acknowledged write survives SIGKILL and power loss (`appendfsync always`); no TCP
port; never two servers on one directory, even after the process that started the first was killed:
the server itself inherits the lock.
"""

from __future__ import annotations

import enum
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from redis.exceptions import BusyLoadingError, RedisError

from deploy.local.log_file import LogBounds
from deploy.local.processes import STORE, Child, hold, replace
from deploy.local.redis_binaries import candidates, choose
from deploy.local.redis_socket import DATA, socket_path, socket_url
from shared.errors import ServerStartError, StoreError
from shared.store.connection import PATIENCE_S, connect
from shared.store.counting.counter_buffer import CounterBuffer
from shared.telemetry.logs import logger

SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "daemonize": "no",
    "logfile": "",
    "appendonly": "yes",
    "appendfsync": "always",
    "no-appendfsync-on-rewrite": "no",
    "aof-load-truncated": "yes",
    "maxmemory-policy": "noeviction",
    "save": "",
    # Buckets of pages stay compact up to 65,000,000 URLs of a site (shared/domain/page_record.py).
    "hash-max-listpack-entries": "1024",
    # it overwrites the environment, by which a leftover server is found
    "set-proc-title": "no",
}
"""Settings that RELIABILITY 5 requires."""

_READY_S = 20.0
_GRACE_S = 10.0
_TAIL = 2000
_POLL_S = 0.01
_TRUNCATED = "short read while loading the AOF"


class RedisAnswer(enum.Enum):
    """Replies of a server to PING."""

    NONE = enum.auto()
    LOADING = enum.auto()
    PONG = enum.auto()


class EmbeddedServer:
    """A server with its data in `home`/redis and its log in `home`/logs/redis.log."""

    name = STORE

    def __init__(
        self,
        home: Path,
        *,
        binaries: Sequence[Path] | None = None,
        env: Mapping[str, str] | None = None,
        bounds: LogBounds = LogBounds(),  # noqa: B008  # immutable
    ) -> None:
        """`binaries`: the programs to try, best first; None: those of this machine. `bounds`: those
        of its log.
        """
        self._home = home.absolute()
        self._data = self._home / DATA
        self._binaries = binaries
        self._env = os.environ if env is None else env
        self._bounds = bounds
        self._held = ExitStack()
        self._lock: int | None = None
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """Address of the server, for `redis_url`."""
        return socket_url(self._home)

    @property
    def pid(self) -> int | None:
        """The process id, None before the first start."""
        return self._child.pid if self._child else None

    def start(self, *, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Launch it and wait until it answers PING after loading its data, or until `cancelled`.
        Raises ServerStartError, with the end of the log if it ended or did not answer for 20 s.
        """
        self.launch()
        silent_since = time.monotonic()
        while (answer := self.answer()) is not RedisAnswer.PONG and not cancelled():
            if self.poll() is not None:
                self._fail("ended while starting")
            if answer is RedisAnswer.LOADING:
                silent_since = time.monotonic()
            if time.monotonic() - silent_since > _READY_S:
                self._fail(f"did not answer in {_READY_S:.0f} s")
            time.sleep(_POLL_S)
        if _TRUNCATED in self.output():
            logger(self.name).error("aof_truncated", data=str(self._data))
            with connect(self.url, PATIENCE_S) as client, suppress(StoreError):
                tally = CounterBuffer()
                tally.add("", "aof_truncated")
                tally.flush(client)

    def launch(self) -> None:
        """Start the process without waiting for an answer. Raises ServerStartError."""
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = self._home / "logs" / f"{self.name}.log"
        log.parent.mkdir(mode=0o700, exist_ok=True)
        if self._lock is None:
            self._lock = self._held.enter_context(hold(self._data / "lock"))
        try:
            command = self._command()
            self._child = Child(
                self.name, command, log, self._env, grace=_GRACE_S, keep=[self._lock],
                bounds=self._bounds,
            )  # fmt: skip
            self._child.launch()
        except BaseException:
            self.stop()
            raise

    def answer(self) -> RedisAnswer:
        """Return its reply to PING."""
        try:
            with connect(self.url, 1.0) as client:
                client.ping()
        except BusyLoadingError:
            return RedisAnswer.LOADING
        except (RedisError, OSError):
            return RedisAnswer.NONE
        return RedisAnswer.PONG

    def poll(self) -> int | None:
        """Return the exit status if it is not running, else None."""
        return 0 if self._child is None else self._child.poll()

    def stop(self) -> None:
        """Stop it and release its directory."""
        if self._child:
            self._child.stop()
        self._held.close()
        self._lock = None

    def output(self) -> str:
        """Return its log since the last start."""
        return self._child.output() if self._child else ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _fail(self, what: str) -> NoReturn:
        said = self.output()[-_TAIL:]
        self.stop()
        raise ServerStartError(f"The server {what}:\n{said}")

    def _command(self) -> list[str]:
        record = self._data / "engine"
        data = record.read_text(encoding="utf-8").strip() if record.exists() else None
        engine = choose(data, candidates() if self._binaries is None else self._binaries)
        if data != str(engine):
            replace(record, f"{engine}\n")
        settings = SETTINGS | {"dir": str(self._data), "unixsocket": str(self._free_socket())}
        return [str(engine.path), *(part for k, v in settings.items() for part in (f"--{k}", v))]

    def _free_socket(self) -> Path:
        path = socket_path(self._home)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        found = path.parent.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise ServerStartError(
                f"{path.parent} must be a directory of mode 0700 that you own: mend or remove it"
            )
        path.unlink(missing_ok=True)
        return path
