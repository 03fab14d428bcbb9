"""Iterators over Redis Streams in both directions, read in parts of STEP entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import redis

from shared.store.client import answering
from shared.store.round_trips import Reading, pairs, read

STEP = 200
Entry = tuple[str, dict[bytes, bytes]]


def forwards(
    client: redis.Redis, key: str, start: str = "-", *, after: str = "", step: int = STEP
) -> Iterator[Entry]:
    """Yield id and fields of each entry, oldest first, from `start` on or after the id `after`."""
    start = f"({after}" if after else start
    return _walk(lambda at: client.xrange(key, at, count=step), start, step)


def backwards(
    client: redis.Redis, key: str, *, before: str = "", step: int = STEP
) -> Iterator[Entry]:
    """Yield id and fields of each entry, newest first; with `before`, only those before that id."""
    end = f"({before}" if before else "+"
    return _walk(lambda at: client.xrevrange(key, at, count=step), end, step)


def _walk(part: Callable[[str], Any], at: str, step: int) -> Iterator[Entry]:
    """Yield the entries of each `part`, `step` at once, which begins at `at`."""
    while True:
        with answering():
            rows = part(at)
        for ident, fields in rows:
            yield ident.decode(), fields
        if len(rows) < step:
            return
        at = f"({rows[-1][0].decode()}"


class NewestEntries(NamedTuple):
    """Entries of several streams, newest first, each with its stream; `older` is the id before
    which there may be more, empty at the end.
    """

    entries: Sequence[tuple[str, str, dict[bytes, bytes]]]
    older: str


def newest(
    client: redis.Redis, keys: Sequence[str], *, each: int, most: int, before: str = ""
) -> NewestEntries:
    """Return the newest entries of all of `keys` together, before the id `before`, in one round
    trip: `each` of a stream are read, and `most` returned, or a few more that have the last id.
    """
    end = f"({before}" if before else "+"
    found = read(client, _newest(keys, end, each))
    # Of a stream with more entries than were read, those before the last one read are not known.
    known = max((_order(rows[-1][0]) for rows in found if len(rows) == each), default=(0, 0))
    entries = [(key, row) for key, rows in zip(keys, found, strict=True) for row in rows]
    entries.sort(key=lambda entry: _order(entry[1][0]), reverse=True)
    entries = [entry for entry in entries if _order(entry[1][0]) >= known]
    if len(entries) > most:
        known = _order(entries[most - 1][1][0])
        entries = [entry for entry in entries if _order(entry[1][0]) >= known]
    return NewestEntries(
        [(key, ident.decode(), pairs(fields)) for key, (ident, fields) in entries],
        f"{known[0]}-{known[1]}" if known > (0, 0) else "",
    )


def _newest(keys: Sequence[str], end: str, each: int) -> Reading[Sequence[Any]]:
    return (yield [("XREVRANGE", key, end, "-", "COUNT", each) for key in keys])


def _order(ident: bytes) -> tuple[int, int]:
    ms, _, number = ident.partition(b"-")
    return int(ms), int(number)
