"""Opened sources: bytes of a file or an answer, uncompressed within bounds, in chunks and lines."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from shared.errors import SourceError

if TYPE_CHECKING:
    from pathlib import Path

CHUNK = 64 * 1024
LINE_LIMIT = 1024 * 1024
# PROTOCOL F7 allows 52,428,800 bytes; a fifth more is read, so that a slightly oversize file is
# imported with a note, while a bomb ends after 60 MiB.
PROTOCOL_LIMIT = 52_428_800
EXPANSION_LIMIT = 60 * 1024 * 1024

GZIP_MAGIC = b"\x1f\x8b"
_NONE: Mapping[str, str] = MappingProxyType({})


class Document(AbstractContextManager["Document"]):
    """One opened source: `name` for reports, `file` at its first byte, `place` it was found at.

    `headers` are those of the answer it came in, if it was one; names in lower case.
    """

    def __init__(
        self, name: str, file: IO[bytes], place: Path | str, headers: Mapping[str, str] = _NONE
    ) -> None:
        self.name = name
        self.file = file
        self.place = place
        self.headers = headers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def open_file(path: Path) -> Document:
    """Open a regular file; raises SourceError for anything else, pipes and devices included."""
    try:
        # O_NONBLOCK: opening a FIFO nobody writes to would wait for ever.
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"cannot read {path}: {reason}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise SourceError(f"cannot read {path}: not a regular file")
    return Document(path.name, file, path)


class Body(Iterator[bytes]):
    """The uncompressed bytes of a document in chunks.

    Reading ends at the first fault, which `fault` then names as (rule, detail): what came before
    is whole and stays usable. gzip is known by its magic bytes, never by a name. `bound` ends
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
        self._take = gzip.GzipFile(fileobj=file, mode="rb").read if self.compressed else file.read
        self._limit = EXPANSION_LIMIT if bound and self.compressed else None

    def __next__(self) -> bytes:
        chunk = b"" if self.fault else self._read()
        self.size += len(chunk)
        if self._limit is not None and self.size > self._limit:
            self.fault = ("F7", f"grows beyond {self._limit} bytes; the rest was not read")
            chunk = b""
        if not chunk:
            raise StopIteration
        return chunk

    def _read(self) -> bytes:
        try:
            return self._take(CHUNK)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self.fault = ("F9", f"broken gzip after {self.size} bytes ({error})")
        except OSError as error:
            self.fault = ("io", f"cannot be read beyond byte {self.size}: {error.strerror}")
        return b""


class Line(NamedTuple):
    """One line without its end; `data` is None where it is longer than LINE_LIMIT bytes."""

    number: int
    data: bytes | None


def lines(chunks: Iterable[bytes]) -> Iterator[Line]:
    """Lines of a stream, numbered from 1, in bounded memory; a UTF-8 byte order mark is removed."""
    number, rest, too_long = 1, b"", False
    for chunk in chunks:
        parts = (rest + chunk).split(b"\n")
        rest = parts.pop()
        for part in parts:
            yield _line(number, part, too_long)
            number, too_long = number + 1, False
        if len(rest) > LINE_LIMIT:
            rest, too_long = b"", True
    if rest or too_long:
        yield _line(number, rest, too_long)


def _line(number: int, data: bytes, too_long: bool) -> Line:
    if too_long or len(data) > LINE_LIMIT:
        return Line(number, None)
    if number == 1:
        data = data.removeprefix(b"\xef\xbb\xbf")
    return Line(number, data.removesuffix(b"\r"))
