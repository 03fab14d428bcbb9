"""Files of a web root, replaced atomically: a reader sees the old bytes or the new ones.

All work goes through one directory handle and plain names, so no link or `..` can lead outside
(RELIABILITY T19, T20). Temporary files of a crashed publisher are removed at the next start.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from shared.config import filenames
from shared.config.filenames import TEMP
from shared.errors import OvertakenError, PublishError, UnwritableError
from shared.metrics.declarations import OTHER

_IOV_MAX = 1024
_MODE = 0o644  # readable for a web server under another account (T21)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OF_ONE_NAME = {errno.EISDIR, errno.ENOTDIR, errno.EBUSY, errno.EPERM, errno.EACCES}
"""Errors of one name: a directory or mount there, an immutable file, another user's in a sticky
directory.
"""


Piece = bytes | memoryview


class StagedFile(NamedTuple):
    """A written file that is not yet in place; `mtime` in whole seconds since 1970.

    `before` identifies its predecessor, None if there was none. `file` is open until it is placed
    or discarded.
    """

    temp: str
    name: str
    mtime: int
    before: tuple[int, int] | None
    file: FileIO


class FileState(NamedTuple):
    """A file as its directory shows it; times in nanoseconds since 1970."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    directory: bool = False


class WebRoot:
    """One directory of published files. Every method raises PublishError if the system refuses."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _refusals(f"open the web root {path}"):
            path.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._closed = weakref.finalize(self, os.close, self._fd)
        mode = os.fstat(self._fd).st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
            raise PublishError(
                f"{path} can be written by others, who could swap files under us: chmod go-w {path}"
            )

    def stands(self) -> bool:
        """Return True if the path still names this directory."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._fd))

    def close(self) -> None:
        """Close the directory handle; garbage collection does so as well."""
        self._closed()

    def stage(self, name: str, pieces: Sequence[Piece], *, since: int = 0) -> StagedFile:
        """Write `pieces` beside `name`; UnwritableError if no file can have that name.

        The mtime is at least a whole second later than the predecessor's, because web servers
        derive ETags from seconds (RELIABILITY 0, finding 5), and not before `since` (s since 1970).
        """
        if not filenames.possible(name):
            raise UnwritableError(f"{name!a} is no name of a file that is published")
        before = self._stat(name)
        if before and stat.S_ISDIR(before.st_mode):
            raise UnwritableError(f"cannot write {name}: a directory is in its place")
        mtime = max(int(time.time()), since)
        if before is not None:
            mtime = max(mtime, int(before.st_mtime) + 1)
        temp = f"{TEMP}{secrets.token_hex(8)}"
        with _refusals(f"write {name}"):
            fd = os.open(temp, _NEW, 0o600, dir_fd=self._fd)
            try:
                _write(fd, pieces)
                os.fchmod(fd, _MODE)
                if before is not None and (before.st_uid, before.st_gid) != _ids(fd):
                    with contextlib.suppress(PermissionError):
                        os.fchown(fd, before.st_uid, before.st_gid)
                os.utime(fd, (mtime, mtime))
                _begin_flush(fd)
            except BaseException:
                os.close(fd)
                self._unlink(temp)
                raise
        return StagedFile(temp, name, mtime, _identity(before), FileIO(fd, "wb"))

    def place(self, staged: StagedFile) -> None:
        """Rename the staged file into place, once the disk has its bytes.

        Raises UnwritableError if the system refuses this one name, and OvertakenError if another
        file has it by now: a publisher stopped for longer than its lease must not replace a newer
        file (F14).
        """
        self.flush(staged)
        with _refusals(f"replace {staged.name}"):
            if _identity(self._stat(staged.name)) != staged.before:
                raise OvertakenError(f"{staged.name} was replaced by another meanwhile: left alone")
            self._rename(staged.temp, staged.name)

    def flush(self, staged: StagedFile) -> None:
        """Wait until the disk has the bytes of the staged file."""
        if not staged.file.closed:
            with _refusals(f"write {staged.name}"), staged.file:
                os.fsync(staged.file.fileno())

    def discard(self, staged: Iterable[StagedFile]) -> None:
        """Discard staged files that were not placed; placed ones stay."""
        staged = list(staged)
        for each in staged:
            each.file.close()
        for each in staged:
            self._unlink(each.temp)

    def mtime(self, name: str) -> int:
        """Return the mtime of `name` in whole seconds since 1970; 0 if it does not exist."""
        return 0 if (found := self.look(name)) is None else found.mtime_ns // 10**9

    def look(self, name: str) -> FileState | None:
        """Return the state of `name`, to detect changes; None if it does not exist."""
        with _refusals(f"look at {name}"):
            found = self._stat(name)
        if found is None:
            return None
        times = (found.st_mtime_ns, found.st_ctime_ns)
        return FileState(found.st_ino, found.st_size, *times, stat.S_ISDIR(found.st_mode))

    def sync(self) -> None:
        """Make placed and removed names durable."""
        with _refusals("sync the web root"):
            os.fsync(self._fd)

    def remove(self, name: str) -> bool:
        """Remove `name`; return True if it existed."""
        _plain(name)
        with _refusals(f"remove {name}"):
            try:
                os.unlink(name, dir_fd=self._fd)
            except FileNotFoundError:
                return False
        return True

    def read(self, name: str) -> bytes | None:
        """Return the bytes of `name`, None if it does not exist. A link is refused."""
        _plain(name)
        with _refusals(f"read {name}"):
            try:
                fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._fd)
            except FileNotFoundError:
                return None
            with os.fdopen(fd, "rb") as file:
                return file.read()

    def read_own(self, name: str) -> bytes | None:
        """Return the bytes of a sitemapd file; None also if unreadable: it will be replaced."""
        try:
            return self.read(name)
        except PublishError:
            return None

    def names(self) -> list[str]:
        """Return all names in the web root."""
        with _refusals("list the web root"):
            return os.listdir(self._fd)

    def sweep(self, older_s: float = 0) -> None:
        """Remove temporary files, `older_s` seconds old, of dead publishers or refused renames."""
        for name in self.names():
            if not name.startswith(TEMP):
                continue
            found = self._stat(name)
            if found is not None and time.time() - found.st_ctime >= older_s:
                self._unlink(name)

    def note(self, name: str, data: bytes, *, durable: bool = False) -> None:
        """Write a small internal file atomically; with `durable`, wait for the disk."""
        temp = f"{TEMP}{secrets.token_hex(8)}"
        with _refusals(f"write {name}"):
            fd = os.open(temp, _NEW, _MODE, dir_fd=self._fd)
            try:
                _write(fd, [data])
                if durable:
                    os.fsync(fd)
            except BaseException:
                self._unlink(temp)
                raise
            finally:
                os.close(fd)
            self._rename(temp, name)
        if durable:
            self.sync()

    def _rename(self, temp: str, name: str) -> None:
        try:
            os.rename(temp, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError as error:
            alone = error.errno in _OF_ONE_NAME
            try:
                os.unlink(temp, dir_fd=self._fd)
            except OSError:
                alone = False  # the directory refuses every change
            if not alone:
                raise
            raise UnwritableError(f"cannot replace {name}: {error.strerror}") from error
        except BaseException:
            self._unlink(temp)
            raise

    def _stat(self, name: str) -> os.stat_result | None:
        _plain(name)
        try:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._fd)


def _plain(name: str) -> None:
    if "/" in name or "\0" in name or name in {"", ".", ".."}:  # could lead outside (T19)
        raise UnwritableError(f"{name!a} is no name of a file in the web root")


def _identity(found: os.stat_result | None) -> tuple[int, int] | None:
    return None if found is None else (found.st_ino, found.st_mtime_ns)


def _begin_flush(fd: int) -> None:
    """Let the disk begin early: that takes 0.5 ms off the wait in `place`.

    Linux starts writing then; the pages stay in its cache while they are written (measured).
    """
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def _write(fd: int, pieces: Sequence[Piece]) -> None:
    for start in range(0, len(pieces), _IOV_MAX):
        some = pieces[start : start + _IOV_MAX]
        done, whole = os.writev(fd, some), sum(map(len, some))
        if done < whole:  # a nearly full disk, or more than 2 GiB
            rest = memoryview(b"".join(some))[done:]
            while rest:
                rest = rest[os.write(fd, rest) :]


def _ids(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_uid, status.st_gid


@contextlib.contextmanager
def _refusals(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PublishError(f"cannot {what}: {error.strerror}; the old files stay") from error


def cause_of(error: PublishError) -> str:
    """Return the cause of a refusal: one of shared.metrics.declarations.CAUSES."""
    number = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
    if number in {errno.ENOSPC, errno.EDQUOT}:
        return "full"
    return "denied" if number in {errno.EACCES, errno.EPERM, errno.EROFS} else OTHER
