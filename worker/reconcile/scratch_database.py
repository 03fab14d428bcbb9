"""Scratch database on disk, so that memory does not grow with a site or a source.

SQLite's temporary database: private to its connection, and deleted with it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from shared.domain.page_record import digest_of
from shared.errors import ReconcileError

_Value = str | int | bytes | None

_CACHE_KIB = 16_384
_PRAGMAS = f"""
PRAGMA cache_size = -{_CACHE_KIB};
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
"""


class ScratchDatabase:
    """A database with this `schema`, for the duration of the context.

    Raises ReconcileError, here and from every method, if the disk has no room or fails.
    """

    def __init__(self, schema: str) -> None:
        with _answering():
            self._base = sqlite3.connect("")
            self._base.executescript(_PRAGMAS + schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._base.close()

    def _write(self, statement: str, *rows: Sequence[_Value]) -> None:
        """Execute `statement` for each of `rows`; without any, once."""
        with _answering():
            self._base.executemany(statement, rows or [()])

    def _read(self, query: str, values: Sequence[_Value] = ()) -> Iterator[Any]:
        """Yield the rows that `query` finds."""
        with _answering():
            yield from self._base.execute(query, values)


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise ReconcileError(
            f"no space for temporary data ({error}): set SQLITE_TMPDIR to a directory with space"
        ) from error


def page_key(loc: str) -> int:
    """Return the key of a page in a scratch database."""
    return int.from_bytes(digest_of(loc), "big", signed=True)
