"""A small disk that is full, out of inodes or read-only (RELIABILITY F8-F10)."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import time
from pathlib import Path
from typing import Self

from tests.faults.tools import needs
from tests.faults.tools.needs import ToolError

_BALLAST = ".ballast"
_BUSY_S = 3.0


class SmallDisk:
    """A tmpfs on `mountpoint` of `size` ("4m") and `inodes`; None: not limited in that way.

    A context manager; unmounted at its end whoever still uses it (then lazily: they keep what they
    have open). Raises ToolError if the kernel refuses.

    tmpfs counts whole pages, a file of one byte takes 4 KiB, and it has one inode for its root.
    """

    def __init__(
        self, mountpoint: Path, size: str | None = None, inodes: int | None = None
    ) -> None:
        needs.root("mount a disk")
        self.path = mountpoint
        self._size, self._inodes = size, inodes
        self._immutable: set[Path] = set()

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True, exist_ok=True)
        limits = ["mode=0755"]
        limits += [f"size={self._size}"] if self._size else []
        limits += [f"nr_inodes={self._inodes}"] if self._inodes else []
        run("mount", "-t", "tmpfs", "-o", ",".join(limits), "faults", str(self.path))
        return self

    def __exit__(self, *_: object) -> None:
        for path in list(self._immutable):
            with contextlib.suppress(ToolError):
                self.mutable(path)
        unmount(self.path)

    def fill(self, leaving: int = 0) -> None:
        """Take all the room but about `leaving` bytes, or all inodes where there is no `size`."""
        if self._size is None:
            self._take_inodes()
            return
        self.free()
        with open(self.path / _BALLAST, "wb", buffering=0) as file:
            while (room := self._room() - leaving) > 0:
                # Others may be writing: what they took meanwhile is not there any more.
                with contextlib.suppress(OSError):
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, room)

    def _room(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def _take_inodes(self) -> None:
        ballast = self.path / _BALLAST
        try:
            ballast.mkdir(exist_ok=True)
            while True:
                (ballast / str(len(os.listdir(ballast)))).touch()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise

    def free(self) -> None:
        """Give back what `fill` took."""
        ballast = self.path / _BALLAST
        if ballast.is_dir():
            for name in os.listdir(ballast):
                (ballast / name).unlink()
            ballast.rmdir()
        else:
            ballast.unlink(missing_ok=True)

    def read_only(self) -> None:
        """Refuse every write with EROFS. ToolError if a file stays open for writing for 3 s."""
        deadline = time.monotonic() + _BUSY_S
        while True:
            try:
                run("mount", "-o", "remount,ro", str(self.path))
            except ToolError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return

    def writable(self) -> None:
        """Allow writes again."""
        run("mount", "-o", "remount,rw", str(self.path))

    def immutable(self, path: Path) -> None:
        """Let nobody change `path` (EPERM), not even root; in a directory nothing can be created,
        renamed or removed. Needs a file system that knows it: ext4, xfs, tmpfs since Linux 6.6.
        """
        run("chattr", "+i", str(path))
        self._immutable.add(path)

    def mutable(self, path: Path) -> None:
        """Undo `immutable`."""
        run("chattr", "-i", str(path))
        self._immutable.discard(path)


def run(name: str, *arguments: str) -> str:
    """Run a program of the system; what it said, ToolError if it failed."""
    done = subprocess.run(
        [needs.program(name), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ToolError(f"{name} {' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def unmount(path: Path) -> None:
    """Unmount `path`, lazily if somebody still uses it; nothing if it is no mount."""
    if not _mounted(path):
        return
    try:
        run("umount", str(path))
    except ToolError:
        run("umount", "--lazy", str(path))


def _mounted(path: Path) -> bool:
    # os.path.ismount() says no where every operation fails, as on a dead FUSE mount.
    wanted = str(path.parent.resolve() / path.name)
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return any(line.split()[1].encode().decode("unicode_escape") == wanted for line in lines)
