"""Opened sources and their byte streams: decompressed within bounds, in chunks and lines."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from shared.errors import SourceError
from worker.http.exchange import SOURCE

if TYPE_CHECKING:
    from pathlib import Path
    from zlib import _Decompress as _Inflate

CHUNK = 64 * 1024
LINE_LIMIT = 1024 * 1024
PROTOCOL_LIMIT = 52_428_800
EXPANSION_LIMIT = SOURCE.size
"""Maximum bytes of a decompressed document: a bomb ends there."""

GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31  # zlib's code of the format, with header and trailer
_LINE_END = re.compile(rb"\r\n|\n|\r")
_NONE: Mapping[str, str] = MappingProxyType({})


class Document(AbstractContextManager["Document"]):
    """One opened source: `name` for reports, `file` at its first byte, `place` where it was found.

    `headers` are those of an HTTP answer, with names in lower case; empty for a file.
    """

    def __init__(
        self, name: str, file: IO[bytes], place: Path | str, headers: Mapping[str, str] = _NONE
    ) -> None:
        self.name, self.file, self.place, self.headers = name, file, place, headers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def open_file(path: Path) -> Document:
    """Open a regular file; raises SourceError for anything else, pipes and devices included."""
    try:
        # O_NONBLOCK: opening a FIFO without a writer would block without end.
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"cannot read {path}: {reason}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise SourceError(f"cannot read {path}: not a regular file")
    return Document(path.name, file, path)


class SourceBody(Iterator[bytes]):
    """The decompressed bytes of a document, in chunks.

    Reading ends at the first fault, stored in `fault` as (rule, detail): all bytes before it are
    returned and usable. gzip is detected by its magic bytes, never by a name. `bound` ends
    compressed documents at EXPANSION_LIMIT bytes; plain ones are as large as their file. Raises
    SourceError where not even the first bytes can be read.
    """

    def __init__(self, file: IO[bytes], *, bound: bool = True) -> None:
        try:
            magic = file.read(len(GZIP_MAGIC))
            file.seek(0)
        except OSError as error:
            raise SourceError(f"cannot be read: {error.strerror}") from error
        self.compressed = magic == GZIP_MAGIC
        self.size = 0
        self.fault: tuple[str, str] | None = None
        self._file = file
        self._chunks = self._inflated() if self.compressed else iter(self._read, b"")
        self._limit = EXPANSION_LIMIT if bound and self.compressed else None

    def __next__(self) -> bytes:
        chunk = next(self._chunks)
        self.size += len(chunk)
        if self._limit is not None and self.size > self._limit:
            self.fault = ("F7", f"grows beyond {self._limit} bytes; the rest was not read")
            self._chunks = iter(())
            raise StopIteration
        return chunk

    def _read(self) -> bytes:
        try:
            return self._file.read(CHUNK)
        except OSError as error:
            self.fault = ("io", f"cannot be read beyond byte {self.size}: {error.strerror}")
        return b""

    def _inflated(self) -> Iterator[bytes]:
        """Yield the content of every member of the gzip file in turn (RFC 1952, 2.2)."""
        data, members = self._read(), 0
        while data:
            while len(data) < len(GZIP_MAGIC) and (more := self._read()):
                data += more
            if members and not data.startswith(GZIP_MAGIC):
                yield from self._behind(data)
                return
            data, members = (yield from self._member(data)), members + 1
            data = data or (b"" if self.fault else self._read())

    def _member(self, data: bytes) -> Generator[bytes, None, bytes]:
        """Yield the content of the member at the start of `data`; return the bytes after it."""
        inflate = zlib.decompressobj(_GZIP)
        while data:
            before = inflate.copy()
            try:
                chunk = inflate.decompress(data, CHUNK)
            except zlib.error as error:
                yield from _until(before, data)
                self._broken(str(error).partition(": ")[2] or str(error))
                return b""
            if chunk:
                yield chunk
            if inflate.eof:
                return inflate.unused_data
            data = inflate.unconsumed_tail or self._read()
        if not self.fault:
            self._broken("it ends in the middle")
        return b""

    def _behind(self, data: bytes) -> Iterator[bytes]:
        """Check the bytes after the last member: zeros, or a fault."""
        while data:
            if data.strip(b"\0"):
                self._broken("bytes follow it that are no gzip")
                return
            data = self._read()
        yield from ()

    def _broken(self, reason: str) -> None:
        self.fault = ("F9", f"broken gzip after {self.size} bytes ({reason})")


def _until(inflate: _Inflate, data: bytes) -> Iterator[bytes]:
    """Yield the output of `data` before its fault: the failing call returns none."""
    with suppress(zlib.error):
        for at in range(len(data)):
            if chunk := inflate.decompress(data[at : at + 1]):
                yield chunk


class TextLine(NamedTuple):
    """One line without its end; `data` is None if it is longer than LINE_LIMIT bytes."""

    number: int
    data: bytes | None


def lines(chunks: Iterable[bytes]) -> Iterator[TextLine]:
    """Yield the lines of a stream, numbered from 1, in bounded memory, without a UTF-8 byte order
    mark.

    Lines end with LF, CR LF or CR.
    """
    number, rest, too_long = 1, b"", False
    for chunk in chunks:
        data = rest + chunk
        # A CR at the end may be the first half of CR LF.
        last = data[-1:] if data.endswith(b"\r") else b""
        parts = (
            _LINE_END.split(data[: len(data) - len(last)]) if b"\r" in data else data.split(b"\n")
        )
        rest = parts.pop() + last
        for part in parts:
            if too_long or number == 1 or len(part) > LINE_LIMIT:
                yield _line(number, part, too_long)
                too_long = False
            else:
                yield TextLine(number, part)
            number += 1
        if len(rest) > LINE_LIMIT:
            rest, too_long = last, True
    if rest or too_long:
        yield _line(number, rest.removesuffix(b"\r"), too_long)


def _line(number: int, data: bytes, too_long: bool) -> TextLine:
    if too_long or len(data) > LINE_LIMIT:
        return TextLine(number, None)
    if number == 1:
        data = data.removeprefix(b"\xef\xbb\xbf")
    return TextLine(number, data)
