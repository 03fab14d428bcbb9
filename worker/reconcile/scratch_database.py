"""Scratch database on disk, so that memory does not grow with a site or a source.

SQLite's temporary database: private to its connection, and deleted with it.
"""

from __future__ import annotations

import sqlite3
from typing import Self

from shared.domain.page_record import digest_of
from shared.errors import ReconcileError

_CACHE_KIB = 16_384
_PRAGMAS = f"""
PRAGMA cache_size = -{_CACHE_KIB};
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
"""


class ScratchDatabase:
    """A database with this `schema`, for the duration of the context.

    Raises ReconcileError at the end of the context if the disk had no room.
    """

    def __init__(self, schema: str) -> None:
        self._base = sqlite3.connect("")
        self._base.executescript(_PRAGMAS + schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._base.close()
        if isinstance(error, sqlite3.Error):
            raise ReconcileError(
                f"no space for temporary data ({error}): set SQLITE_TMPDIR to a "
                "directory with space"
            ) from error


def page_key(loc: str) -> int:
    """Return the key of a page in a scratch database."""
    return int.from_bytes(digest_of(loc), "big", signed=True)
