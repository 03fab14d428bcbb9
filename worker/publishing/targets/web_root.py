"""Files of a web root, replaced atomically: a reader sees the old bytes or the new ones.

All work goes through one directory handle and plain names, so no link or `..` can lead outside
(RELIABILITY T19, T20).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
import time
import weakref
from collections.abc import Collection, Iterable, Sequence
from io import FileIO
from pathlib import Path

from shared.config import filenames
from shared.config.filenames import MARKER, TEMP
from shared.errors import OvertakenError, PublishError, UnwritableError
from shared.store.publishing.publish_work import PublishRun
from worker.publishing.targets.target import FileState, Piece, StagedFile, Target

_IOV_MAX = 1024
_MODE = 0o644  # readable for a web server under another account (T21)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OF_ONE_NAME = {errno.EISDIR, errno.ENOTDIR, errno.EBUSY, errno.EPERM, errno.EACCES}
"""Errors of one name: a directory or mount there, an immutable file, another user's in a sticky
directory.
"""


class WebRoot(Target):
    """One directory of published files. Every method raises PublishError if the system refuses."""

    def __init__(self, path: Path) -> None:
        self.path, self.address = path, str(path)
        with _Refusals(f"open the web root {path}"):
            path.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._closed = weakref.finalize(self, os.close, self._fd)
        self._left: PublishRun | None = None
        self._marker, self._is = b"", os.fstat(self._fd)
        mode = self._is.st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
            raise PublishError(
                f"{path} can be written by others, who could swap files under us: chmod go-w {path}"
            )

    def stands(self) -> bool:
        """Return True if the path still names this directory."""
        with contextlib.suppress(OSError):
            return os.path.samestat(os.stat(self.path), self._is)
        return False

    def is_of(self, run: PublishRun) -> bool:
        """Return True if the path still names this directory, and its run marker is as last
        accepted, of `run` or of an earlier publish of it. ownership.py judges anything else.
        """
        left = self._left
        if left is None or left.ident != run.ident or left.publishes > run.publishes:
            return False
        return self.stands() and self.read_own(MARKER) == self._marker

    def accept(self, run: PublishRun) -> None:
        """Take the run marker as that of `run`: `is_of` is then True until it changes."""
        self._left, self._marker = run, marker_of(run)

    def mark(self, run: PublishRun) -> bool:
        """Mark the files as those of `run`; they are marked as those of an earlier publish of it.

        In place, and not flushed: without the last publish the marker is still right, and if it is
        torn all files are compared. No descriptor is kept: one that is open for writing would keep
        an administrator from mounting the disk read-only.
        """
        if self._left is None or self._left.history != run.history:
            self._left = None
            return False
        self.accept(run)
        with _Refusals(f"write {MARKER}"), contextlib.suppress(FileNotFoundError):
            fd = os.open(MARKER, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._fd)
            try:
                os.pwrite(fd, self._marker, 0)
            finally:
                os.close(fd)
        return True

    def close(self) -> None:
        """Close the directory handle; garbage collection does so as well."""
        self._closed()

    def stage(
        self, name: str, pieces: Sequence[Piece], *, since: int = 0, dated: int = 0
    ) -> StagedFile:
        """Write `pieces` beside `name`; UnwritableError if no file can have that name.

        The mtime is at least a whole second later than the predecessor's, because web servers
        derive ETags from seconds (RELIABILITY 0, finding 5): then `dated` if given, else not before
        `since` (s since 1970).
        """
        if not filenames.possible(name):
            raise UnwritableError(f"{name!a} is no name of a file that is published")
        before = self._stat(name)
        if before and stat.S_ISDIR(before.st_mode):
            raise UnwritableError(f"cannot write {name}: a directory is in its place")
        mtime = dated or max(int(time.time()), since)
        if before is not None:
            mtime = max(mtime, int(before.st_mtime) + 1)
        temp = f"{TEMP}{secrets.token_hex(8)}"
        with _Refusals(f"write {name}"):
            fd = os.open(temp, _NEW, 0o600, dir_fd=self._fd)
            try:
                _write(fd, pieces)
                os.fchmod(fd, _MODE)
                owner = before and (before.st_uid, before.st_gid)
                if owner and owner != _ids(fd):
                    with contextlib.suppress(PermissionError):
                        os.fchown(fd, *owner)
                os.utime(fd, (mtime, mtime))
                # Linux begins to write then, and keeps the pages in its cache: 0.5 ms less to wait.
                if hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
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
        with _Refusals(f"replace {staged.name}"):
            if _identity(self._stat(staged.name)) != staged.before:
                raise OvertakenError(f"{staged.name} was replaced by another meanwhile: left alone")
            self._rename(staged.temp, staged.name)

    def flush(self, staged: StagedFile) -> None:
        """Wait until the disk has the bytes of the staged file."""
        if not staged.content.closed:
            with _Refusals(f"write {staged.name}"), staged.content:
                os.fsync(staged.content.fileno())

    def discard(self, staged: Collection[StagedFile]) -> None:
        """Discard staged files that were not placed; placed ones stay."""
        for each in staged:
            each.content.close()
        for each in staged:
            self._unlink(each.temp)

    def mtime(self, name: str) -> int:
        """Return the mtime of `name` in whole seconds since 1970; 0 if it does not exist."""
        return 0 if (found := self.look(name)) is None else found.mtime_ns // 10**9

    def look(self, name: str) -> FileState | None:
        """Return the state of `name`, to detect changes; None if it does not exist."""
        _plain(name)
        with _Refusals(f"look at {name}"):
            found = self._stat(name)
        if found is None:
            return None
        times = (found.st_mtime_ns, found.st_ctime_ns)
        return FileState(found.st_ino, found.st_size, *times, stat.S_ISDIR(found.st_mode))

    def look_at(self, names: Iterable[str]) -> dict[str, FileState | None]:
        """Return `look` of many names."""
        return {name: self.look(name) for name in names}

    def sync(self) -> None:
        """Make placed and removed names durable."""
        with _Refusals("sync the web root"):
            os.fsync(self._fd)

    def remove(self, name: str) -> bool:
        """Remove `name`; return True if it existed."""
        _plain(name)
        with _Refusals(f"remove {name}"):
            try:
                os.unlink(name, dir_fd=self._fd)
            except FileNotFoundError:
                return False
        return True

    def read(self, name: str) -> bytes | None:
        """Return the bytes of `name`, None if it does not exist. A link is refused."""
        _plain(name)
        with _Refusals(f"read {name}"):
            try:
                with FileIO(name, opener=self._open) as file:
                    return file.readall()
            except FileNotFoundError:
                return None

    def read_own(self, name: str) -> bytes | None:
        """Return the bytes of a sitemapd file; None also if unreadable: it will be replaced."""
        try:
            return self.read(name)
        except PublishError:
            return None

    def names(self) -> list[str]:
        """Return all names in the web root."""
        with _Refusals("list the web root"):
            return os.listdir(self._fd)

    def sweep(self, older_s: float = 0) -> None:
        """Remove temporary files, `older_s` seconds old, of dead publishers or refused renames."""
        for name in self.names():
            if not name.startswith(TEMP):
                continue
            with contextlib.suppress(PublishError):
                found = self.look(name)
                if found is not None and time.time() - found.ctime_ns / 10**9 >= older_s:
                    self.remove(name)

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

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=self._fd)

    def _stat(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._fd)


def marker_of(run: PublishRun) -> bytes:
    """Return the content of the run marker: of the same length for each publish of one state."""
    history = f", {json.dumps(run.history)}" if run.history else ""
    return f"[{json.dumps(run.ident)}, {run.publishes:20}{history}]".encode()


def _plain(name: str) -> None:
    if "/" in name or "\0" in name or name in {"", ".", ".."}:  # could lead outside (T19)
        raise UnwritableError(f"{name!a} is no name of a file in the web root")


def _identity(found: os.stat_result | None) -> tuple[int, int] | None:
    return None if found is None else (found.st_ino, found.st_mtime_ns)


def _ids(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_uid, status.st_gid


def _write(fd: int, pieces: Sequence[Piece]) -> None:
    for start in range(0, len(pieces), _IOV_MAX):
        some = pieces[start : start + _IOV_MAX]
        done, whole = os.writev(fd, some), sum(map(len, some))
        if done < whole:  # a nearly full disk, or more than 2 GiB
            rest = memoryview(b"".join(some))[done:]
            while rest:
                rest = rest[os.write(fd, rest) :]


class _Refusals:
    """A block in which an error of the system becomes a PublishError."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            said = f"cannot {self._what}: {error.strerror}; the old files stay"
            raise PublishError(said) from error
