"""Memory and size bounds, measured on generated sources; order that a consumer can resume in."""

from __future__ import annotations

import gzip
import tracemalloc
from itertools import islice
from typing import TYPE_CHECKING

import psutil
import pytest

from worker.sources import Note, RecordRefusal, SourceRecord, read
from worker.sources.source_streams import EXPANSION_LIMIT
from worker.sources.xml.xml_splitter import PIECE_LIMIT

if TYPE_CHECKING:
    from pathlib import Path

HEAD = b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
MEBIBYTE = 1024 * 1024


def entry(number: int) -> bytes:
    return (
        b"<url><loc>https://a.example/page-%d</loc><lastmod>2026-01-01</lastmod></url>\n" % number
    )


def counted(source: str) -> tuple[int, list[str]]:
    pages, rules = 0, []
    for item in read(source):
        if isinstance(item, SourceRecord):
            pages += 1
        else:
            rules.append(item.rule)
    return pages, rules


def write_pages(path: Path, count: int, form: str) -> None:
    with path.open("wb") as file:
        file.write({"xml": HEAD, "txt": b"", "csv": b"loc\n", "ndjson": b""}[form])
        for number in range(count):
            url = b"https://a.example/page-%d" % number
            file.write(
                {
                    "xml": entry(number),
                    "txt": url + b"\n",
                    "csv": url + b"\n",
                    "ndjson": b'{"loc": "%b"}\n' % url,
                }[form]
            )
        file.write(b"</urlset>" if form == "xml" else b"")


@pytest.mark.parametrize("form", ["xml", "txt", "csv", "ndjson"])
def test_200_000_pages_are_read_in_little_memory(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"big.{form}"
    write_pages(path, 200_000, form)
    process = psutil.Process()
    before = process.memory_info().rss
    pages, _ = counted(f"{'sitemap' if form in {'xml', 'txt'} else form}:{path}")
    grown = process.memory_info().rss - before

    assert pages == 200_000
    assert grown < 30 * MEBIBYTE


def test_more_than_50_000_pages_are_noted(tmp_path: Path) -> None:
    write_pages(tmp_path / "s.xml", 50_001, "xml")

    assert counted(str(tmp_path / "s.xml")) == (50_001, ["F7"])
    write_pages(tmp_path / "s.xml", 50_000, "xml")
    assert counted(str(tmp_path / "s.xml")) == (50_000, [])


def test_a_gzip_bomb_ends_at_the_bound_and_keeps_the_pages_before_it(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xml.gz"
    with gzip.open(path, "wb") as file:
        file.write(HEAD + entry(1))
        for _ in range(300):
            file.write(b" " * MEBIBYTE)
    process = psutil.Process()
    before = process.memory_info().rss
    items = list(read(str(path)))
    grown = process.memory_info().rss - before

    assert any(isinstance(item, RecordRefusal) and item.rule == "F7" for item in items)
    assert path.stat().st_size < MEBIBYTE
    assert grown < 30 * MEBIBYTE


def test_a_plain_file_over_the_limit_is_read_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "long.xml"
    comment = b"<!--" + b"x" * (MEBIBYTE - 7) + b"-->"
    with path.open("wb") as file:
        file.write(HEAD)
        for number in range(EXPANSION_LIMIT // MEBIBYTE + 1):
            file.write(entry(number) + comment)
        file.write(b"</urlset>")

    assert counted(str(path)) == (EXPANSION_LIMIT // MEBIBYTE + 1, ["F7"])


@pytest.mark.parametrize("filler", [b"<a>", b"<!--x", b"&", b"x", b"<![CDATA[", b"<loc>"])
def test_an_endless_entry_is_refused_in_bounded_memory(tmp_path: Path, filler: bytes) -> None:
    path = tmp_path / "endless.xml"
    path.write_bytes(HEAD + entry(1) + b"<url>" + filler * (8 * PIECE_LIMIT // len(filler)))
    tracemalloc.start()
    items = list(read(str(path)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert sum(isinstance(item, SourceRecord) for item in items) == 1
    assert any(isinstance(item, RecordRefusal) for item in items)
    assert peak < 12 * PIECE_LIMIT


def test_pages_behind_an_entry_that_is_too_large_are_read(tmp_path: Path) -> None:
    path = tmp_path / "s.xml"
    huge = b"<url><loc>" + b"x" * (PIECE_LIMIT + 1) + b"</loc></url>\n"
    path.write_bytes(HEAD + entry(1) + huge + entry(3) + b"</urlset>")
    first, refusal, third = read(str(path))

    assert isinstance(first, SourceRecord)
    assert isinstance(refusal, RecordRefusal)
    assert isinstance(third, SourceRecord)
    assert (refusal.where, third.where) == ("s.xml#2", "s.xml#3")


def test_50_000_equal_faults_are_one_note(tmp_path: Path) -> None:
    path = tmp_path / "s.xml"
    bad = b"<url><loc>https://a.example/?a&b=%d</loc></url>\n"
    path.write_bytes(HEAD + b"".join(bad % n for n in range(50_000)) + b"</urlset>")
    items = list(read(str(path)))

    assert len(items) == 50_001
    assert Note("s.xml#1", "F4", "unescaped & read as &amp;", 50_000) == items[-1]


def test_a_reading_can_be_resumed_by_skipping_what_was_counted(tmp_path: Path) -> None:
    write_pages(tmp_path / "s.xml", 20_000, "xml")
    source = str(tmp_path / "s.xml")
    whole = list(read(source))

    assert whole == [*islice(read(source), 12_345), *islice(read(source), 12_345, None)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64 * 1024])
def test_where_chunks_end_makes_no_difference(size: int) -> None:
    from worker.sources.xml.xml_splitter import Items, XmlSplitter

    items = Items(b"url", frozenset({b""}), b"urn:n")
    own = b"<x:url/><s:url a='>' xmlns:s = 'urn:n'><loc/></s:url>\n"
    data = b"<!-- <url> -->" + entry(1) + b"<![CDATA[<url>]]>" + entry(2) + own + b"</urlset >\n"
    chunks = (data[at : at + size] for at in range(0, len(data), size))
    pieces = list(XmlSplitter(items, b"urlset", 1, 0).pieces(chunks))

    assert [piece.kind for piece in pieces] == ["head", "entry", "entry", "entry", "tail"]
    assert data == b"".join(piece.data or b"" for piece in pieces)
    assert [piece.line for piece in pieces] == [1, 1, 2, 3, 4]
