"""Kill a process at its n-th system call, or let that call fail: strace (RELIABILITY F1-F3, F11).

How strace counts and matches (6.1, tried):

- Calls are counted per thread and per system call, from the moment of attaching.
- The signal comes on entering: the call is not done any more.
- `path` is compared as a whole, with the path behind any descriptor of the call and with the name
  as it was given, links resolved. The directory thus matches every call that names a file by
  `dir_fd`, and its fsync, but no write to a file in it.
- A process has one tracer: a second one at the same time is refused with ToolError.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from tests.faults.tools import needs
from tests.faults.tools.needs import ToolError

CHANGES = (
    "openat", "write", "writev", "pwrite64", "ftruncate", "fallocate", "fchmod", "fchown",
    "utimensat", "fadvise64", "fsync", "fdatasync", "renameat", "unlinkat", "linkat", "close",
)  # fmt: skip
"""What a program does to change files. A publisher was traced to do, for each file, openat, writev,
fchmod, utimensat, fadvise64; then fsync and close of each; then renameat of each, and fsync of the
directory; unlinkat of what lists nothing any more; and pwrite64 of the run marker, once it has
committed. Two threads of a worker may publish in turns.
"""

_ATTACH_S = 10.0
_POLL_S = 0.002


class Call(NamedTuple):
    """One system call; `path` is the last that it names, of a descriptor or a name, or empty."""

    name: str
    path: str


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except FileNotFoundError:
        return []


def _tracer(pid: int, thread: int) -> int:
    try:
        status = Path(f"/proc/{pid}/task/{thread}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = re.search(r"^TracerPid:\s*(\d+)", status, re.MULTILINE)
    return int(found[1]) if found else 0


class Tracer:
    """strace on a running process and all its threads, or on a command that it starts.

    Raises ToolError if it cannot be attached within 10 s. Ends with `stop()` or as a context
    manager; the traced process then goes on untraced. A command is started with the caller's
    standard streams; `started` is strace itself, whose exit status is the command's.
    """

    def __init__(self, target: int | Sequence[str | Path], options: Sequence[str]) -> None:
        strace = needs.program("strace")
        descriptor, name = tempfile.mkstemp(prefix="strace-", suffix=".log")
        os.close(descriptor)
        self._log, self._said = Path(name), ""
        self._pid = target if isinstance(target, int) else None
        tail = ["-p", str(target)] if isinstance(target, int) else ["--", *map(str, target)]
        quiet = subprocess.PIPE if self._pid is not None else None
        self.started = subprocess.Popen(
            [strace, "-f", "-qq", "-o", name, *options, *tail], stderr=quiet, text=True
        )
        if self._pid is not None:
            self._await_attached(self._pid)

    def _await_attached(self, pid: int) -> None:
        deadline = time.monotonic() + _ATTACH_S
        while True:
            threads = _threads(pid)
            if threads and all(_tracer(pid, each) == self.started.pid for each in threads):
                return
            status = self.started.poll()
            if status is not None or time.monotonic() > deadline:
                self.stop()
                said = self.started.stderr.read().strip() if self.started.stderr else ""
                raise ToolError(f"strace could not be attached to {pid}: {said or status}")
            time.sleep(_POLL_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log(self) -> str:
        """What strace wrote until now."""
        return self._log.read_text(errors="replace") if self._log.exists() else self._said

    def stop(self) -> None:
        """Let go of the process."""
        if self.started.poll() is None:
            self.started.terminate()
            try:
                self.started.wait(5)
            except subprocess.TimeoutExpired:
                self.started.kill()
                self.started.wait()
        if self._log.exists():
            self._said = self.log()
            self._log.unlink()


class _Injection(Tracer):
    def __init__(
        self,
        target: int | Sequence[str | Path],
        syscall: str,
        nth: int,
        path: str | Path | None,
        what: str,
        last: str = "",
    ) -> None:
        if nth < 1:
            raise ToolError(f"calls are counted from 1, not {nth}")
        where = [] if path is None else ["-P", os.path.realpath(path)]
        inject = f"inject={syscall}:{what}:when={nth}{last}"
        super().__init__(target, [*where, "-e", f"trace={syscall}", "-e", inject])


class KillAt(_Injection):
    """SIGKILL on entering the `nth` call of `syscall` from now on."""

    def __init__(
        self,
        target: int | Sequence[str | Path],
        syscall: str,
        nth: int = 1,
        path: str | Path | None = None,
    ) -> None:
        super().__init__(target, syscall, nth, path, "signal=SIGKILL")

    def fired(self) -> bool:
        """Whether it was killed; by somebody else's SIGKILL, too."""
        return "+++ killed by SIGKILL +++" in self.log()


class FailAt(_Injection):
    """The `nth` call of `syscall` from now on is not done and fails with `error`, a name of errno.

    With `every`, each later one, too.
    """

    def __init__(
        self,
        target: int | Sequence[str | Path],
        syscall: str,
        error: str = "EIO",
        nth: int = 1,
        path: str | Path | None = None,
        *,
        every: bool = False,
    ) -> None:
        super().__init__(target, syscall, nth, path, f"error={error}", "+" if every else "")

    def fired(self) -> bool:
        """Whether a call failed by our doing."""
        return "(INJECTED)" in self.log()


def trace(
    pid: int,
    seconds: float,
    until: Callable[[], bool] = lambda: False,
    calls: Sequence[str] = CHANGES,
) -> list[Call]:
    """The system calls of `pid` for `seconds`, or until `until()` holds, in order."""
    with Tracer(pid, ["-y", "-s", "0", "-e", f"trace={','.join(calls)}"]) as tracer:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not until():
            time.sleep(_POLL_S)
    return parse(tracer.log())


def points(calls: Sequence[Call], directory: str | Path) -> list[tuple[str, int]]:
    """(syscall, nth) of each call of `calls` that touches `directory` or what is in it.

    As KillAt and FailAt count without a path, if one thread of the process makes all these calls.
    """
    inside = os.path.join(os.path.realpath(directory), "")
    counts: dict[str, int] = {}
    found = []
    for call in calls:
        counts[call.name] = counts.get(call.name, 0) + 1
        if os.path.join(call.path, "").startswith(inside):
            found.append((call.name, counts[call.name]))
    return found


_CALL = re.compile(r"^\d+\s+(\w+)\((.*)$")
_PATH = re.compile(r'(?:\b\d+|AT_FDCWD)<(/[^>]*|\w+:\[?\w*\]?[^>]*)>|"((?:[^"\\]|\\.)+)"')


def parse(log: str) -> list[Call]:
    """The calls of a log written with `-f -y`; what the kernel resumed is listed once."""
    found = []
    for line in log.splitlines():
        call = _CALL.match(line)
        if call is None:
            continue
        arguments = call[2].rpartition(") = ")[0] or call[2]
        path = ""
        for behind, name in _PATH.findall(arguments):
            path = behind or os.path.join(path, name)
        found.append(Call(call[1], path))
    return found
