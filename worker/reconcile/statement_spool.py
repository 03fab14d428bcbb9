"""Spool of the statements of a source, united to one per page.

Statements wait on disk until all were read: only then is everything known that the source says of a
page. Memory grows neither with the pages nor with repeated statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

import msgpack
from isal import isal_zlib

from shared.batches import batches
from shared.events.event import Event
from shared.events.plain_page import PlainPage
from worker.reconcile.deduplication import Deduplication, Statement
from worker.reconcile.event_mapping import Remark
from worker.reconcile.scratch_database import ScratchDatabase, page_key

BATCH = 500
"""Maximum number of pages that are read from the spool at once."""

_SCHEMA = """
CREATE TABLE chunks (number INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE stated (page INTEGER NOT NULL, place INTEGER NOT NULL);
CREATE TABLE repeated (page INTEGER PRIMARY KEY, first INTEGER NOT NULL);
CREATE TABLE held (first INTEGER NOT NULL, place INTEGER NOT NULL, row BLOB NOT NULL);
"""

StatedPage = PlainPage | Event
_Row = tuple[int, str, int, tuple[str | int | None, ...] | bytes]
"""Page, place, number of the set of silent fields, plain page or event."""


class SpooledPages(NamedTuple):
    """Some pages of a source with their silent fields, each as in a SourceRecord.

    `repeated` is the number of statements about them beside the first of each.
    """

    pages: list[StatedPage]
    silent: list[frozenset[str]]
    repeated: int = 0


class StatementSpool(ScratchDatabase):
    """The statements of one source; first all are added, then the pages are read."""

    def __init__(self, began_ms: int, most_bytes: int) -> None:
        """Create a spool; `began_ms` and `most_bytes` are those of a Deduplication."""
        super().__init__(_SCHEMA)
        self._began_ms, self._most_bytes = began_ms, most_bytes
        self._rows: list[_Row] = []
        self._silent: dict[frozenset[str], int] = {}
        self._added = 0

    def add(self, page: StatedPage, where: str, silent: frozenset[str]) -> None:
        """Add a statement about a page, which has a loc; `where` and `silent` as in a Statement."""
        loc = page.loc
        assert loc is not None
        number = self._silent.setdefault(silent, len(self._silent))
        stored = page if isinstance(page, PlainPage) else page.dump()
        self._rows.append((page_key(loc), where, number, stored))
        if len(self._rows) == BATCH:
            self._flush()

    def pages(self, on_remark: Callable[[Remark], None]) -> Iterator[SpooledPages]:
        """Yield all pages, up to BATCH at a time; `on_remark` gets what was left out.

        In the order of the source; pages stated several times come last.
        """
        self._flush()
        self._write(
            "INSERT INTO repeated SELECT page, min(place) FROM stated"
            " GROUP BY page HAVING count(*) > 1 ORDER BY page"
        )
        ((repeated,),) = self._read("SELECT count(*) FROM repeated")
        silent = list(self._silent)
        for number in range(0, self._added, BATCH):
            rows = self._chunk(number)
            first = self._repeated(rows) if repeated else {}
            if first:
                self._hold(number, rows, first)
                rows = [row for row in rows if row[0] not in first]
            if rows:
                pages = [_page(stored) for *_, stored in rows]
                yield SpooledPages(pages, [silent[row[2]] for row in rows])
        if repeated:
            for united in batches(self._united(on_remark), BATCH):
                pages = [PlainPage.of(said.event) or said.event for said, _ in united]
                more = sum(times for _, times in united) - len(united)
                yield SpooledPages(pages, [said.silent for said, _ in united], more)

    def _flush(self) -> None:
        rows = self._rows
        if rows:
            packed = isal_zlib.compress(msgpack.packb(rows), 1)
            self._write("INSERT INTO chunks VALUES (?, ?)", (self._added, packed))
            places = [(row[0], place) for place, row in enumerate(rows, self._added)]
            self._write("INSERT INTO stated VALUES (?, ?)", *places)
            self._added += len(rows)
            self._rows = []

    def _chunk(self, number: int) -> list[_Row]:
        query = "SELECT packed FROM chunks WHERE number = ?"
        ((packed,),) = self._read(query, (number,))
        rows: list[_Row] = msgpack.unpackb(isal_zlib.decompress(packed), use_list=False)
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
        silent = list(self._silent)
        found = self._read("SELECT first, row FROM held ORDER BY first, place")
        for _, group in groupby(found, key=lambda each: each[0]):
            pages: dict[str | None, Deduplication] = {}  # two if their digests are equal
            for _, row in group:
                _, where, number, stored = msgpack.unpackb(row, use_list=False)
                stated = _page(stored)
                event = stated.event() if isinstance(stated, PlainPage) else stated
                page = pages.setdefault(event.loc, Deduplication(self._began_ms, self._most_bytes))
                page.add(Statement(event, where, silent[number]))
            for page in pages.values():
                whole, dropped = page.result()
                for each in dropped:
                    on_remark(Remark("noted", whole.where, each.rule, each.detail, whole.event.loc))
                yield whole, page.count


def _page(stored: tuple[str | int | None, ...] | bytes) -> StatedPage:
    return Event.load(stored) if isinstance(stored, bytes) else PlainPage._make(stored)
