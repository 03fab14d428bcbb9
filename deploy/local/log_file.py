"""Log file of a child process, written from a pipe and rotated: bounded in size, without a gap.

The process that owns the pipe writes the file, so a line is in the old file or in the new one; a
child that holds its log file open would write on into the old one.
"""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

_READ_BYTES = _TAIL_BYTES = 65_536


class LogBounds(NamedTuple):
    """Bytes of one file, and the number of rotated files that are kept beside it."""

    size: int = 10 * 1024 * 1024
    kept: int = 3


class LogFile:
    """A log at `path`, with its rotated files `path`.1 (the newest) to `path`.N."""

    def __init__(self, path: Path, bounds: LogBounds) -> None:
        self.path = path
        self.lost = 0
        """Lines that could not be written since the last one that was."""
        self._bounds = bounds
        self._lock = threading.Lock()
        self._file: int | None = None
        self._size = self._begin = 0

    def pump(self, source: IO[bytes]) -> threading.Thread:
        """Write whatever comes from `source`, in a thread that ends with it.

        The source is always read: a full disk must not make the child wait.
        """
        thread = threading.Thread(target=self._copy, args=(source,), name="log", daemon=True)
        thread.start()
        return thread

    def begin(self) -> None:
        """Note that a process starts, and trim what others left beyond the bound."""
        with self._lock, suppress(OSError):
            if self._found() > self._bounds.size:
                self._close()
                self._cut()
                self._rotate()
        self._begin = self._found()

    def tail(self) -> str:
        """Return what was written since `begin`, at most the last 64 KiB of it."""
        with suppress(FileNotFoundError), self.path.open("rb") as log:
            log.seek(max(self._begin, self._found() - _TAIL_BYTES))
            return log.read().decode(errors="replace").strip()
        return ""

    def _found(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def _copy(self, source: IO[bytes]) -> None:
        with source:
            rest = b""
            while read := os.read(source.fileno(), _READ_BYTES):
                lines, end, rest = (rest + read).rpartition(b"\n")
                if len(rest) > _READ_BYTES:
                    lines, end, rest = lines + end + rest, b"", b""
                self._append(lines + end)
            self._append(rest)
        with self._lock:
            self._close()

    def _append(self, text: bytes) -> None:
        with self._lock:
            try:
                if text and self.lost:
                    self._write_all(b"log lines lost: %d\n" % self.lost)
                    self.lost = 0
                self._write_all(text)
            except OSError:
                self.lost += text.count(b"\n")

    def _write_all(self, text: bytes) -> None:
        while text:
            text = self._write(text)

    def _write(self, text: bytes) -> bytes:
        """Append as many whole lines as the file may take, or rotate it; return the others."""
        if self._file is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(self.path, flags, 0o600)
            self._size = os.fstat(self._file).st_size
        room = max(0, self._bounds.size - self._size)
        end = len(text) if len(text) <= room else text.rfind(b"\n", 0, room) + 1
        if not end and self._size:
            self._close()
            self._rotate()
            return text
        # A line longer than a file is written in parts.
        written = os.write(self._file, text[: end or self._bounds.size])
        self._size += written
        return text[written:]

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _name(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path

    def _rotate(self) -> None:
        kept = self._bounds.kept
        last = next((n for n in range(1, kept) if not self._name(n).exists()), kept)
        for number in range(last, 0, -1):
            with suppress(FileNotFoundError):
                self._name(number - 1).replace(self._name(number))
        self.path.unlink(missing_ok=True)  # where none is kept
        self._begin = 0

    def _cut(self) -> None:
        """Keep as much of the end of the file as a rotated one may have."""
        end = self._name(1).with_suffix(".end")
        try:
            with self.path.open("rb") as log, end.open("wb") as copy:
                log.seek(-self._bounds.size, os.SEEK_END)
                shutil.copyfileobj(log, copy)
            end.replace(self.path)
        except OSError:  # no room for the copy: the space is needed more than the old lines
            end.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)
