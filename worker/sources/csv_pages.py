"""CSV files of pages: a header row with `loc`, or one column of addresses without a header."""

from __future__ import annotations

import csv
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from shared.errors import SourceError
from worker.sources.records import STATED, Item, RecordRefusal, SourceCounts, SourceRecord
from worker.sources.source_streams import LINE_LIMIT, Document, SourceBody, lines
from worker.sources.xml.entry_records import check_loc
from worker.sources.xml.extension_values import XML_SPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FIELDS = frozenset({"loc", "lastmod", "changefreq", "priority"})
EXTRAS = frozenset({"id", "section", "version"})
_ORDERED_EXTRAS = sorted(EXTRAS)
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


def read_csv(document: Document) -> Iterator[Item]:
    """Yield the pages of a CSV file (UTF-8, gzip allowed; comma, semicolon or tab as its header
    shows).

    Raises SourceError for UTF-16, for an empty file and for a header without `loc`. A line that is
    not UTF-8 is refused with its number.
    """
    tally = SourceCounts(document.name)
    body = SourceBody(document.file, bound=False)
    yield from _rows(body, document, tally)
    if body.fault:
        yield RecordRefusal(document.name, *body.fault)
    yield from tally.notes()


def _rows(body: SourceBody, document: Document, tally: SourceCounts) -> Iterator[Item]:
    name = document.name
    bad: list[RecordRefusal] = []
    text = _decoded(body, name, bad)
    first = next(text, None)
    if first is None:
        if not body.fault and not bad:
            raise SourceError(f"{name} is empty")
        yield from bad
        return
    columns, delimiter = _header(first, name)
    for unknown in sorted(set(columns) - FIELDS - EXTRAS):
        tally.add("csv", f"the column {unknown[:40] or '(unnamed)'} is not read")
    rows = csv.reader(text if columns else chain([first], text), delimiter=delimiter)
    for number, row in enumerate(_each(rows), 1):
        yield from bad
        bad.clear()
        where = f"{name}#{number}"
        if isinstance(row, str):
            yield RecordRefusal(where, "csv", row)
        elif any(cell.strip() for cell in row):
            yield _page(row, columns, where)
    yield from bad


def _header(first: str, name: str) -> tuple[list[str], str]:
    """Return the column names, none for addresses without a header, and the delimiter."""
    delimiter = max(",;\t", key=first.count)
    try:
        cells = next(csv.reader([first], delimiter=delimiter), [])
    except csv.Error:
        cells = []
    columns = [cell.strip().lower() for cell in cells]
    if "loc" in columns:
        return columns, delimiter
    if "://" in first or first.startswith("/"):
        return [], ","
    raise SourceError(f"{name}: the header names no column loc")


def _each(rows: Iterator[list[str]]) -> Iterator[list[str] | str]:
    """Yield each row, or the csv reader's error message for a bad one, after which reading
    continues.
    """
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield str(error)
            continue
        if row is None:
            return
        yield row


def _decoded(body: Iterable[bytes], name: str, bad: list[RecordRefusal]) -> Iterator[str]:
    for number, data in lines(body):
        if number == 1 and data is not None and data.startswith(UTF16_BOMS):
            raise SourceError(f"{name} is UTF-16; save it as UTF-8")
        if data is None:
            detail = f"line {number} is longer than {LINE_LIMIT} bytes"
            bad.append(RecordRefusal(name, "csv", detail))
            continue
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            detail = f"line {number} is not UTF-8 (byte {error.start + 1})"
            bad.append(RecordRefusal(name, "csv", detail))
            continue
        yield text + "\n"


def _page(row: list[str], columns: list[str], where: str) -> SourceRecord | RecordRefusal:
    if not columns:
        if len(row) > 1:
            detail = "several columns and no header that names them"
            return RecordRefusal(where, "csv", detail, row[0][:200])
        columns = ["loc"]
    if len(row) > len(columns):
        return RecordRefusal(
            where, "csv", f"{len(row)} cells under {len(columns)} columns", row[0][:200]
        )
    cells = {name: cell.strip(XML_SPACE) for name, cell in zip(columns, row, strict=False)}
    return record(cells, where)


def record(values: dict[str, str], where: str) -> SourceRecord | RecordRefusal:
    """Return a page from its named values; empty ones count as absent, unknown ones are ignored."""
    refused = check_loc(values.get("loc"), where)
    if refused is not None:
        return refused
    extra = None
    if not EXTRAS.isdisjoint(values):
        extra = {name: values[name] for name in _ORDERED_EXTRAS if values.get(name)} or None
    get = values.get
    return SourceRecord(
        values["loc"], where, get("lastmod") or None, get("changefreq") or None,
        get("priority") or None, extra, silent=_silent(tuple(values)),
    )  # fmt: skip


@lru_cache(64)
def _silent(names: tuple[str, ...]) -> frozenset[str]:
    return STATED.difference(names)
