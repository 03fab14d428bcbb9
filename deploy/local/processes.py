"""Child processes: one session each, stopped by id, found again after their supervisor was killed.

Guarantee: on Linux every process started here carries its run in its environment, so that none is
missed and no other process that got a recycled process id is ever signalled. On other systems only
the guard of the same run cleans up, by the listed ids.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from deploy.local.log_file import LogBounds, LogFile
from shared.errors import ServerStartError

MARK = "SITEMAPD_RUN"
STORE = "redis"
SERVED = Path("run", "http")
"""Path within a home of the file with the address at which its `up` serves."""

_LAST_LINES_S = 1.0
_POLL_S = 0.05


@contextmanager
def hold(path: Path) -> Iterator[int]:
    """Hold the lock file `path`. Raises ServerStartError with the holder's id if another process
    does.

    Yields the descriptor: a process that inherits it keeps the lock until it ends.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            raise ServerStartError(
                f"{path.parent} is in use by process {holder}: stop it, or choose another --home"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def served_at(home: Path) -> str:
    """Return the address at which the `up` that holds `home` serves, empty if none does."""
    try:
        with (home / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(OSError):
            return (home / SERVED).read_text(encoding="utf-8").strip()
    except OSError:
        pass
    return ""


def replace(path: Path, text: str) -> None:
    """Write `path` so that a reader, or a start after a crash, sees the old or the new text."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    temporary.replace(path)


class Child:
    """One supervised process, the leader of its own session; its output goes to a log file."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        env: Mapping[str, str],
        *,
        grace: float = 5.0,
        keep: Sequence[int] = (),
        pipe: bool = False,
        bounds: LogBounds = LogBounds(),  # noqa: B008  # immutable
    ) -> None:
        """`grace`: seconds between SIGTERM and SIGKILL; `keep`: descriptors it inherits; `bounds`:
        those of its log; `pipe`: it outlives this process, at whose end its standard input ends,
        and writes its log itself.
        """
        self.name = name
        self.log = log
        self._file = LogFile(log, bounds)
        self._pump: threading.Thread | None = None
        self._command = command
        self._env = env
        self._grace = grace
        self._keep = tuple(keep)
        self._stdin = subprocess.PIPE if pipe else subprocess.DEVNULL
        self._alive = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id, None before the first start."""
        return self._process.pid if self._process else None

    def launch(self) -> None:
        """Start the process. Raises OSError if the program cannot be executed."""
        self._file.begin()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=self._stdin,
                stdout=log if self._stdin == subprocess.PIPE else subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._env,
                start_new_session=True,
                pass_fds=self._keep,
            )
        self._alive = True
        if self._process.stdout:
            self._pump = self._file.pump(self._process.stdout)

    def poll(self) -> int | None:
        """Return the exit status if it is not running, else None; kills the rest of its session."""
        if self._process is None:
            return 0
        status = self._process.poll()
        if status is not None and self._alive:
            self._alive = False
            self._kill_session(self._process)
        return status

    def stop(self) -> None:
        """Stop it: SIGTERM (end of input for a piped one), after `grace` SIGKILL to its session."""
        process = self._process
        if process is None or self.poll() is not None:
            return
        if process.stdin:
            process.stdin.close()
        else:
            process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(self._grace)
        self._kill_session(process)
        process.wait()
        self._alive = False
        self._finish_log()

    def output(self) -> str:
        """Return its output since the last start, at most the last 64 KiB."""
        if not self._alive:
            self._finish_log()
        return self._file.tail()

    def _finish_log(self) -> None:
        """Wait for the last lines of a process that has ended."""
        if self._pump:
            self._pump.join(_LAST_LINES_S)

    @staticmethod
    def _kill_session(process: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def mark(run: str, name: str) -> dict[str, str]:
    """Return the environment variable by which a child of `run` is found again."""
    return {MARK: f"{run}#{name}"}


def marked(run: str) -> dict[int, str]:
    """Map the process id to the child name, for all living processes of `run` (or of all runs that
    begin with it).

    Empty where there is no /proc.
    """
    found = {}
    wanted = f"{MARK}={run}#".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            for variable in entry.read_bytes().split(b"\0"):
                if variable.startswith(wanted):
                    found[int(entry.parent.name)] = variable.rpartition(b"#")[2].decode()
    found.pop(os.getpid(), None)
    return found


def reap(run: str, grace: float = 10.0) -> list[str]:
    """End the processes left of `run`, the store last, and return their names.

    `grace`: seconds between SIGTERM and SIGKILL.
    """
    names: set[str] = set()
    for last in (False, True):
        asked: set[int] = set()
        deadline = time.monotonic() + grace
        while left := {p: n for p, n in marked(run).items() if (n == STORE) == last}:
            names.update(left.values())
            late = time.monotonic() > deadline
            for pid in left.keys() if late else left.keys() - asked:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            asked.update(left)
            time.sleep(_POLL_S)
    return sorted(names)


def reap_listed(pids: Path) -> None:
    """Kill the sessions listed in `pids`, for systems without /proc; the store last."""
    try:
        listed: dict[str, int] = json.loads(pids.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for _, pid in sorted(listed.items(), key=lambda item: item[0] == STORE):
        if pid != os.getpid():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
