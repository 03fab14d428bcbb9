"""CSV and NDJSON files of pages."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from shared.errors import SourceError
from worker.sources import Item, Note, RecordRefusal, SourceRecord, read

if TYPE_CHECKING:
    from pathlib import Path


Load = Callable[..., list[Item]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def items(kind: str, content: str | bytes) -> list[Item]:
        path = tmp_path / f"pages.{kind}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return list(read(f"{kind}:{path}"))

    return items


def test_csv_columns_are_read_by_name(load: Load) -> None:
    text = "\ufeffID,Loc,priority,section,shoe\n7, https://a.example/ ,0.5,posts,42\n"
    record, note = load("csv", text)

    assert (
        SourceRecord(
            "https://a.example/",
            "pages.csv#1",
            priority="0.5",
            extra={"id": "7", "section": "posts"},
        )
        == record
    )
    assert Note("pages.csv", "csv", "the column shoe is not read") == note


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_delimiters_are_known_by_the_header(load: Load, delimiter: str) -> None:
    rows = [["loc", "lastmod"], ["https://a.example/", "2026-01-01"]]
    text = "\r\n".join(delimiter.join(row) for row in rows)

    assert [SourceRecord("https://a.example/", "pages.csv#1", lastmod="2026-01-01")] == load(
        "csv", text
    )


def test_csv_without_header_is_one_column_of_addresses(load: Load) -> None:
    first, second, third = load(
        "csv", 'https://a.example/;x\n"https://a.example/a,b"\nhttps://a,b\n'
    )

    assert SourceRecord("https://a.example/;x", "pages.csv#1") == first
    assert SourceRecord("https://a.example/a,b", "pages.csv#2") == second
    assert isinstance(third, RecordRefusal)


def test_a_csv_line_that_is_not_utf8_is_refused_by_its_number(load: Load) -> None:
    items = load("csv", b"loc\nhttps://a.example/1\n\xff\nhttps://a.example/2\n")

    assert [SourceRecord, RecordRefusal, SourceRecord] == [type(item) for item in items]
    assert "line 3" in str(items[1])


def test_csv_rows_without_loc_or_with_too_many_cells_are_refused(load: Load) -> None:
    items = load("csv", "loc,id\n,1\n\nhttps://a.example/,1,2\nhttps://a.example/\n")

    assert [(item.where, item.rule) for item in items if isinstance(item, RecordRefusal)] == [
        ("pages.csv#1", "F13"),
        ("pages.csv#3", "csv"),
    ]
    assert SourceRecord("https://a.example/", "pages.csv#4") == items[-1]


def test_an_endless_quoted_field_is_refused_and_reading_goes_on(load: Load) -> None:
    filler = "x" * 1000 + "\n"
    items = load("csv", 'loc\n"https://a.example/\n' + filler * 200 + "https://a.example/2\n")

    assert isinstance(items[0], RecordRefusal)
    assert SourceRecord("https://a.example/2", items[-1].where) == items[-1]


@pytest.mark.parametrize("content", [b"", b"name,url\n1,x\n", "loc\nx\n".encode("utf-16")])
def test_csv_without_content_loc_or_utf8_is_an_error(load: Load, content: bytes) -> None:
    with pytest.raises(SourceError):
        load("csv", content)


def test_ndjson_objects_carry_the_fields_of_an_event(load: Load) -> None:
    line = (
        '{"type": "upsert", "loc": " https://a.example/ ", "priority": 0.80, "version": 12,'
        ' "id": "p1", "noindex": false, "images": [{"loc": "x", "title": "T"}], "rank": 1,'
        ' "group": "g", "lang": ["en"], "title": "T", "videos": null}\n\n'
    )
    record, old, note = load("ndjson", gzip.compress(line.encode()))

    assert (
        SourceRecord(
            "https://a.example/",
            "pages.ndjson#1",
            priority="0.80",
            extra={"id": "p1", "version": "12", "group": "g", "lang": ["en"], "title": "T"},
            images=[{"loc": "x", "title": "T"}],
        )
        == record
    )
    assert isinstance(record, SourceRecord)
    assert record.silent == {"lastmod", "changefreq", "news"}
    assert "rank=1" in str(note)
    assert "images.title has no effect" in str(old)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("{", "ndjson"),
        ("[]", "ndjson"),
        ('{"loc": 1e400, "x": NaN}', "ndjson"),
        ('{"loc": "a", "loc": "b"}', "ndjson"),
        ('{"loc": true}', "ndjson"),
        ('{"loc": "\\ud800"}', "ndjson"),
        ("[" * 100_000, "ndjson"),
        ('{"id": "1"}', "F13"),
        ('{"loc": "https://a.example/", "noindex": true}', "L8"),
        ('{"loc": "https://a.example/", "canonical": "https://a.example/b"}', "L8"),
        ('{"loc": "https://a.example/", "type": "delete"}', "L8"),
    ],
)
def test_a_bad_ndjson_line_is_refused_and_the_next_one_read(
    load: Load, line: str, rule: str
) -> None:
    refusal, record = load("ndjson", line + '\n{"loc": "https://a.example/2"}')

    assert isinstance(refusal, RecordRefusal)
    assert (RecordRefusal, "pages.ndjson#1", rule) == (type(refusal), refusal.where, refusal.rule)
    assert SourceRecord("https://a.example/2", "pages.ndjson#2") == record
