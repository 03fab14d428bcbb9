"""What each tool must be seen to do; see __main__."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.faults.tools.check_network import network, proxy, until, wakeups
from tests.faults.tools.clock import Clock
from tests.faults.tools.disk import SmallDisk
from tests.faults.tools.powercut import PowerCut
from tests.faults.tools.store import Store
from tests.faults.tools.syscalls import FailAt, KillAt, points, trace

_WRITER = """
import os, sys
directory = os.open(sys.argv[1], os.O_RDONLY)
for line in sys.stdin:
    try:
        file = os.open("temp", os.O_WRONLY | os.O_CREAT, dir_fd=directory)
        os.write(file, b"new")
        os.fsync(file)
        os.close(file)
        os.rename("temp", "file", src_dir_fd=directory, dst_dir_fd=directory)
        print("done", flush=True)
    except OSError as error:
        print(error.errno, flush=True)
"""

_WATCH = """
import ctypes, sys, threading, time
class Moment(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
semaphore = ctypes.create_string_buffer(64)
libc = ctypes.CDLL(None, use_errno=True)
libc.sem_init(semaphore, 0, 0)
for line in sys.stdin:
    begin, until = time.monotonic(), time.time() + 0.2
    libc.sem_timedwait(semaphore, ctypes.byref(Moment(int(until), int(until % 1 * 1e9))))
    print(time.time(), time.monotonic(), time.monotonic() - begin, flush=True)
"""


def _ask(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    print("go", file=process.stdin, flush=True)
    return process.stdout.readline().strip()


def _python(code: str, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
    )  # fmt: skip


def _refused(work: Callable[[], object]) -> int:
    try:
        work()
    except OSError as error:
        return error.errno or -1
    return 0


def syscalls(directory: Path) -> str:
    """A rename fails, a rename kills before it is done, a trace names what a program does."""
    with _python(_WRITER, str(directory)) as process:
        assert _ask(process) == "done"
        calls = trace(process.pid, 10, lambda: bool(_ask(process)))
        names = [name for name, _ in points(calls, directory)]
        assert names[:5] == ["openat", "write", "fsync", "close", "renameat"], names
        for where in (None, directory):
            with FailAt(process.pid, "renameat", "ENOSPC", 2, where) as failing:
                said = [_ask(process) for _ in range(3)]
                assert said == ["done", str(errno.ENOSPC), "done"], said
                assert failing.fired()
        (directory / "file").write_text("old")
        with KillAt(process.pid, "renameat", 1, directory) as killing:
            assert _ask(process) == ""
            until(killing.fired, "the kill is told")
    assert process.returncode == -9
    assert (directory / "file").read_text() == "old"
    assert (directory / "temp").read_text() == "new"
    return f"traced {len(calls)} calls, failed the 2nd renameat, killed before the next"


def clock(directory: Path) -> str:
    """Time jumps for Python and for the store, each for itself; waits and monotonic time do not."""
    with Clock(directory / "clock") as shifted:
        environment = {**os.environ, **shifted.environment()}
        os.environ.update(shifted.environment())
        try:
            store = Store(directory / "store")
            store.__enter__()
        finally:
            os.environ.pop("FAULTS_CLOCK")
            os.environ.pop("LD_PRELOAD")
        with store, _python(_WATCH, env=environment) as process:
            for app, other in ((0, 0), (3600, -60), (-86400, 86400)):
                shifted.shift(app, other)
                until(partial(_shows, store, other), "the store's clock is shifted")
                wall, steady, waited = map(float, _ask(process).split())
                assert abs(wall - time.time() - app) < 5
                assert abs(steady - time.monotonic()) < 5
                assert 0.15 < waited < 5, waited
            process.stdin.close()  # type: ignore[union-attr]
    return "+-1 d and +-1 h in Python and the store, waits unharmed"


def _shows(store: Store, shift: float) -> bool:
    return abs(store.client.time()[0] - time.time() - shift) < 5


def disk(directory: Path) -> str:
    """ENOSPC by bytes and by inodes, EROFS, EPERM; unmounted although a file is open."""
    path = directory / "disk"
    new = path / "new"
    with SmallDisk(path, "256k") as small:
        small.fill(4096)
        assert _refused(lambda: new.write_bytes(bytes(8192))) == errno.ENOSPC
        small.free()
        assert _refused(lambda: new.write_bytes(bytes(8192))) == 0
        small.read_only()
        assert _refused(lambda: new.write_bytes(b"x")) == errno.EROFS
        small.writable()
        small.immutable(path)
        assert _refused((path / "other").touch) == errno.EPERM
        small.mutable(path)
        held = new.open("rb")
    assert not os.path.ismount(path)
    held.close()
    with SmallDisk(path, inodes=8) as small:
        small.fill()
        assert _refused(new.touch) == errno.ENOSPC
    return "full, out of inodes, read-only, immutable; gone"


def powercut(directory: Path) -> str:
    """RELIABILITY P14: what the order of fsync, rename and fsync of the directory is worth."""
    for journalled in (True, False):
        platter = directory / f"platter-{journalled}"
        with PowerCut(directory / "mount", platter, journalled=journalled) as machine:
            _publish(machine.path, "intact", b"old")
            _publish(machine.path, "intact", b"new")
            _publish(machine.path, "early", b"old")
            _publish(machine.path, "early", b"new", sync_file=False)
            _publish(machine.path, "unsynced", b"new", sync_directory=False)
            machine.cut()
            assert _refused(lambda: os.listdir(machine.path)) == errno.EIO
            machine.heal()
            assert (machine.path / "intact").read_bytes() == b"new"
            assert (machine.path / "early").read_bytes() == b""
            assert (machine.path / "unsynced").exists() == journalled
    platter = directory / "aof"
    # A store syncs its directory, but nobody syncs the one in which it made that directory: without
    # an orderly end first, everything would be lost.
    machine = PowerCut(directory / "mount", platter, journalled=False)
    with machine, Store(machine.path):
        pass
    with PowerCut(directory / "mount", platter, journalled=False) as machine:
        with Store(machine.path) as store:
            for number in range(200):
                store.client.xadd("stream", {"n": number})
            machine.cut()
        machine.heal()
        with Store(machine.path) as store:
            assert store.client.xlen("stream") == 200
    return "unsynced bytes and names lost, synced ones kept, 200 of 200 writes to a store"


def _publish(
    root: Path, name: str, data: bytes, *, sync_file: bool = True, sync_directory: bool = True
) -> None:
    directory = os.open(root, os.O_RDONLY)
    file = os.open("temp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=directory)
    os.write(file, data)
    if sync_file:
        os.fsync(file)
    os.close(file)
    os.rename("temp", name, src_dir_fd=directory, dst_dir_fd=directory)
    if sync_directory:
        os.fsync(directory)
    os.close(directory)


ALL: dict[str, Callable[[Path], str]] = {
    each.__name__: each for each in (syscalls, clock, disk, powercut, proxy, wakeups, network)
}
