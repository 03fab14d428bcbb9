"""Spool of the statements of a source, united to one per page.

Statements wait on disk until all were read: only then is everything known that the source says of a
page. Memory grows neither with the pages nor with repeated statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

import msgpack
from isal import isal_zlib

from shared.events.event import Event
from worker.reconcile.deduplication import Deduplication, Statement
from worker.reconcile.event_mapping import Remark
from worker.reconcile.scratch_database import ScratchDatabase, page_key

_CHUNK = 500
_SCHEMA = """
CREATE TABLE chunks (number INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE stated (page INTEGER NOT NULL, place INTEGER NOT NULL);
CREATE TABLE repeated (page INTEGER PRIMARY KEY, first INTEGER NOT NULL);
CREATE TABLE held (first INTEGER NOT NULL, place INTEGER NOT NULL, row BLOB NOT NULL);
"""

_Row = tuple[int, str, int, bytes]
"""Page, place, number of the set of silent fields, event."""


class StatementSpool(ScratchDatabase):
    """The statements of one source; first all are added, then the pages are read."""

    def __init__(self, began_ms: int, most_bytes: int) -> None:
        """Create a spool; `began_ms` and `most_bytes` are those of a Deduplication."""
        super().__init__(_SCHEMA)
        self._began_ms, self._most_bytes = began_ms, most_bytes
        self._rows: list[_Row] = []
        self._silent: list[frozenset[str]] = []
        self._added = 0

    def add(self, said: Statement) -> None:
        """Add a statement about a page; its event has a loc."""
        if said.silent not in self._silent:
            self._silent.append(said.silent)
        assert said.event.loc is not None
        silent = self._silent.index(said.silent)
        self._rows.append((page_key(said.event.loc), said.where, silent, said.event.dump()))
        if len(self._rows) == _CHUNK:
            self._flush()

    def pages(self, on_remark: Callable[[Remark], None]) -> Iterator[tuple[Statement, int]]:
        """Yield each page and the number of its statements; `on_remark` gets what was left out.

        In the order of the source; pages stated several times come last.
        """
        self._flush()
        self._write(
            "INSERT INTO repeated SELECT page, min(place) FROM stated"
            " GROUP BY page HAVING count(*) > 1 ORDER BY page"
        )
        ((repeated,),) = self._read("SELECT count(*) FROM repeated")
        for number in range(0, self._added, _CHUNK):
            rows = self._chunk(number)
            first = self._repeated(rows) if repeated else {}
            if first:
                self._hold(number, rows, first)
            yield from ((self._statement(row), 1) for row in rows if row[0] not in first)
        if repeated:
            yield from self._united(on_remark)

    def _flush(self) -> None:
        rows = self._rows
        if rows:
            packed = isal_zlib.compress(msgpack.packb(rows), 1)
            self._write("INSERT INTO chunks VALUES (?, ?)", (self._added, packed))
            places = [(page, self._added + place) for place, (page, *_) in enumerate(rows)]
            self._write("INSERT INTO stated VALUES (?, ?)", *places)
            self._added += len(rows)
            self._rows = []

    def _chunk(self, number: int) -> list[_Row]:
        query = "SELECT packed FROM chunks WHERE number = ?"
        ((packed,),) = self._read(query, (number,))
        rows: list[_Row] = msgpack.unpackb(isal_zlib.decompress(packed))
        return rows

    def _repeated(self, rows: list[_Row]) -> dict[int, int]:
        """Return the first place of those pages of `rows` that are stated several times."""
        marks = ",".join("?" * len(rows))
        query = f"SELECT page, first FROM repeated WHERE page IN ({marks})"  # noqa: S608  # nosec B608
        return dict(self._read(query, [page for page, *_ in rows]))

    def _hold(self, number: int, rows: list[_Row], first: dict[int, int]) -> None:
        held = [
            (first[row[0]], number + place, msgpack.packb(row))
            for place, row in enumerate(rows)
            if row[0] in first
        ]
        if held:
            self._write("INSERT INTO held VALUES (?, ?, ?)", *held)

    def _united(self, on_remark: Callable[[Remark], None]) -> Iterator[tuple[Statement, int]]:
        found = self._read("SELECT first, row FROM held ORDER BY first, place")
        for _, group in groupby(found, key=lambda each: each[0]):
            pages: dict[str | None, Deduplication] = {}  # two if their digests are equal
            for _, row in group:
                said = self._statement(msgpack.unpackb(row))
                page = pages.setdefault(
                    said.event.loc, Deduplication(self._began_ms, self._most_bytes)
                )
                page.add(said)
            for page in pages.values():
                whole, dropped = page.result()
                for each in dropped:
                    on_remark(Remark("noted", whole.where, each.rule, each.detail, whole.event.loc))
                yield whole, page.count

    def _statement(self, row: _Row) -> Statement:
        _, where, silent, event = row
        return Statement(Event.load(event), where, self._silent[silent])
