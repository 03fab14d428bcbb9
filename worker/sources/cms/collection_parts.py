"""Paging: the one way in which a collection of a CMS is read to its end, whatever its interface.

A reader says how a part is read, given a cursor: a number, the key of the last entry, an address or
a token of the server. Cursors by key miss nothing that stays; of the others, the stated total shows
that the collection changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from shared.cms.fields import Fields
from shared.errors import SourceError
from shared.events.permalinks import lookup
from worker.sources.records import RecordRefusal

EMPTY_PARTS = 100
"""Most parts without an entry in a row: a server that has more has lost its place."""


TOO_OFTEN = 100
"""Most times that rows are read again because older ones were deleted."""


class Part(NamedTuple):
    """One answer: its `entries`, the cursor of the next part (None: this is the last), and the
    number of all entries, if the interface states it and counts by it.
    """

    entries: Sequence[Fields]
    after: Any | None
    total: int | None = None


def entries(name: str, part: Callable[[Any | None], Part]) -> Iterator[Fields | RecordRefusal]:
    """Yield all entries of the collection `name`; `part` gets None for the first.

    If there were fewer than stated, a refusal says that some may be missing. Raises SourceError
    for a server that comes to no end.
    """
    cursor: Any | None = None
    passed, empty, read, most = set(), 0, 0, 0
    while True:
        found = part(cursor)
        yield from found.entries
        read, most = read + len(found.entries), max(most, found.total or 0)
        cursor = found.after
        if cursor is None:
            break
        empty = 0 if found.entries else empty + 1
        if cursor in passed or empty > EMPTY_PARTS:
            raise SourceError(f"{name} comes to no end: after {read} entries it begins again")
        passed.add(cursor)
    if read < most:
        detail = f"it gave {read} of {most}: it changed while it was read"
        yield RecordRefusal(name, "changed", detail, whole=True)


def objects(value: object, path: str, name: str) -> list[Fields]:
    """Return the array of objects at a dotted path of an answer. Raises SourceError."""
    found = lookup(value, path) if path else value
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise SourceError(f"{name} is no collection: it has no array of objects {path}".rstrip())
    return found


def number(value: object, path: str, name: str) -> int:
    """Return the number at a dotted path of an answer. Raises SourceError."""
    found = lookup(value, path)
    if type(found) is not int:
        raise SourceError(f"{name} is no collection: it has no number {path}")
    return found


def by_offset(
    name: str, rows_at: Callable[[int], tuple[Sequence[Fields], int]], step: int
) -> Iterator[Fields]:
    """Yield all rows of a collection that is sorted by a numeric `id` and counts by offsets.

    `rows_at` returns the rows from an offset on, `step` or fewer, and the number of all. Each
    answer begins with the last row of the one before: otherwise an older one was deleted meanwhile
    and others have moved up, and the previous rows are read again. Raises SourceError.
    """
    offset = last = again = 0
    while True:
        rows, total = rows_at(offset)
        if offset and (not rows or rows[0]["id"] > last):
            offset, again = max(0, offset - step), again + 1
            if again > TOO_OFTEN:
                raise SourceError(f"{name} changes faster than it can be read")
            continue
        new = [row for row in rows if row["id"] > last]
        yield from new
        last = new[-1]["id"] if new else last
        offset += len(rows)
        if offset >= total:
            return
        if not new:
            raise SourceError(f"{name} ends after {offset} of {total}")
        offset -= 1
