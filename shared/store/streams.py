"""Iterators over Redis Streams in both directions, read in parts of STEP entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import redis

from shared.store.client import answering

STEP = 200
Entry = tuple[str, dict[bytes, bytes]]


def forwards(
    client: redis.Redis, key: str, start: str = "-", *, after: str = "", step: int = STEP
) -> Iterator[Entry]:
    """Yield id and fields of each entry, oldest first, from `start` on or after the id `after`."""
    start = f"({after}" if after else start
    while True:
        with answering():
            rows: Any = client.xrange(key, start, count=step)
        for ident, fields in rows:
            yield ident.decode(), fields
        if len(rows) < step:
            return
        start = f"({rows[-1][0].decode()}"


def backwards(
    client: redis.Redis, key: str, *, before: str = "", step: int = STEP
) -> Iterator[Entry]:
    """Yield id and fields of each entry, newest first; with `before`, only those before that id."""
    end = f"({before}" if before else "+"
    while True:
        with answering():
            rows: Any = client.xrevrange(key, end, count=step)
        for ident, fields in rows:
            yield ident.decode(), fields
        if len(rows) < step:
            return
        end = f"({rows[-1][0].decode()}"
