"""Spool of rows for a later join, in bounded memory.

All rows of a spool have one size and begin with a digest; its first byte assigns them to one of
PARTS. Rows beyond the memory limit of a part go to one temporary file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from shared.errors import CheckError

PARTS = 256
"""Number of parts; of 10,000,000 rows of 26 bytes, one holds 1 MB."""

_FLUSH = 32 * 1024


class JoinSpool:
    """Rows of `size` bytes each; `flush` bytes of a part are kept in memory.

    Raises CheckError, here and from every method, if the temporary file fails.
    """

    def __init__(self, size: int, flush: int = _FLUSH) -> None:
        self._size, self._flush = size, flush
        self._held = [bytearray() for _ in range(PARTS)]
        self._spilt: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]
        with spooling():
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `__exit__`

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # it flushes rows that are not needed any more
            self._file.close()

    def add(self, row: bytes) -> None:
        """Add a row."""
        held = self._held[row[0]]
        held += row
        if len(held) >= self._flush:
            with spooling():
                self._spilt[row[0]].append((self._file.seek(0, 2), len(held)))
                self._file.write(held)
            held.clear()

    def part(self, number: int) -> Iterator[bytes]:
        """Yield the rows whose digest begins with this byte, in the order of `add`."""
        for at, length in self._spilt[number]:
            with spooling():
                self._file.seek(at)
                rows = self._file.read(length)
            yield from self._rows(rows)
        yield from self._rows(bytes(self._held[number]))

    def _rows(self, joined: bytes) -> Iterator[bytes]:
        for at in range(0, len(joined), self._size):
            yield joined[at : at + self._size]


@contextmanager
def spooling() -> Iterator[None]:
    """Translate errors of a temporary file to CheckError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise CheckError(
            f"no room for a temporary file ({reason}): set TMPDIR to a directory with space"
        ) from error
