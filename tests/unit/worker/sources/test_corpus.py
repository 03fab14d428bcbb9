"""Every file of the corpus of real sitemaps gives exactly the pages it holds."""

from __future__ import annotations

import csv
import gzip
import os
from collections import Counter
from pathlib import Path

import feedparser
import pytest
from usp.tree import sitemap_from_str

from worker.sources import Note, RecordRefusal, SourceRecord, read

CORPUS = Path(
    os.environ.get("SITEMAPD_CORPUS")
    or Path(__file__).resolve().parents[4].parent / "shared" / "corpus"
)
pytestmark = pytest.mark.skipif(
    not (CORPUS / "MANIFEST.tsv").is_file(), reason="corpus of real sitemaps not present"
)


def manifest() -> list[dict[str, str]]:
    if not (CORPUS / "MANIFEST.tsv").is_file():
        return []
    with (CORPUS / "MANIFEST.tsv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["kind"] != "robots"]


WHOLE = [row for row in manifest() if row["well_formed"] in {"yes", "n/a"}]
LISTS = [row for row in WHOLE if "index" not in row["kind"]]
# ultimate-sitemap-parser drops relative addresses and rewrites those with spaces or raw IRIs.
COMPARABLE = [
    row
    for row in LISTS
    if "txt" not in row["kind"]
    and "feed" not in row["file"]
    and not any(trait in row["traits"] for trait in ("relative=", "loc-space", "rawIRI"))
]
INDEXES = [row for row in WHOLE if "index" in row["kind"]]


def outcome(name: str) -> tuple[int, list[tuple[str, str]], list[tuple[str, str, int]]]:
    items = list(read(str(CORPUS / name)))
    return (
        sum(isinstance(item, SourceRecord) for item in items),
        [(item.where, item.rule) for item in items if isinstance(item, RecordRefusal)],
        [(item.where, item.rule, item.count) for item in items if isinstance(item, Note)],
    )


def text_of(name: str) -> str:
    data = (CORPUS / name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode()


@pytest.mark.parametrize("row", LISTS, ids=lambda row: row["file"])
def test_well_formed_files_give_all_their_entries_and_no_refusal(row: dict[str, str]) -> None:
    pages, refusals, _ = outcome(row["file"])

    assert (int(row["entries"]), []) == (pages, refusals)


@pytest.mark.parametrize("row", INDEXES, ids=lambda row: row["file"])
def test_an_index_without_its_files_refuses_each_of_them(row: dict[str, str]) -> None:
    pages, refusals, _ = outcome(row["file"])

    expected = [(f"{row['file']}#{n}", "N4") for n in range(1, int(row["entries"]) + 1)]
    assert (0, expected) == (pages, refusals)


@pytest.mark.parametrize("row", COMPARABLE, ids=lambda row: row["file"])
def test_an_independent_parser_finds_the_same_addresses(row: dict[str, str]) -> None:
    theirs = {page.url for page in sitemap_from_str(text_of(row["file"])).all_pages()}
    ours = {item.loc for item in read(str(CORPUS / row["file"])) if isinstance(item, SourceRecord)}

    assert theirs == ours


@pytest.mark.parametrize("row", [r for r in LISTS if "feed" in r["file"]], ids=lambda r: r["file"])
def test_an_independent_feed_parser_finds_the_same_links(row: dict[str, str]) -> None:
    theirs = [entry.link for entry in feedparser.parse((CORPUS / row["file"]).read_bytes()).entries]
    ours = [item.loc for item in read(str(CORPUS / row["file"])) if isinstance(item, SourceRecord)]

    assert theirs == ours


def test_a_doubled_start_tag_costs_itself_and_no_page() -> None:
    name = "malformed-01-debatesylhet-tag.xml"

    assert (21, [(f"{name}#8", "F4")], []) == outcome(name)


def test_the_fault_is_named_by_line_and_column() -> None:
    items = list(read(str(CORPUS / "malformed-01-debatesylhet-tag.xml")))
    (refusal,) = [item for item in items if isinstance(item, RecordRefusal)]

    assert "(line 46, column 3)" in refusal.detail


def test_one_bare_ampersand_is_read_and_noted() -> None:
    name = "malformed-02-debatesylhet-amp.xml"

    assert (10, [], [(f"{name}#8", "F4", 1)]) == outcome(name)
    assert "https://www.tiktok.com/@debatesylhetbd?_r=1&_t=ZS-93uPgO1BlJ7" in {
        item.loc for item in read(str(CORPUS / name)) if isinstance(item, SourceRecord)
    }


def test_bare_ampersands_in_nearly_every_entry_lose_no_page() -> None:
    name = "malformed-03-ucsd-kba-amp.xml"
    pages, refusals, notes = outcome(name)

    assert pages == 497
    assert Counter(rule for _, rule in refusals) == {"F13": 11}
    assert [(f"{name}#1", "F4", 497)] == notes


def test_text_before_the_markup_is_skipped_and_noted() -> None:
    name = "malformed-04-aegis-leadingtext.xml"

    assert (29, [], [(name, "F3", 1)]) == outcome(name)


def test_a_false_encoding_declaration_is_noted_and_not_believed() -> None:
    name = "malformed-05-retype-utf16decl.xml.gz"

    assert (44, [], [(name, "F3", 1)]) == outcome(name)


def test_an_html_page_is_called_one() -> None:
    items = list(read(str(CORPUS / "malformed-06-html404-edenvolgye.xml")))

    assert [i.detail for i in items if isinstance(i, RecordRefusal)] == ["this is an HTML page"]
    assert len(items) == 1


def test_a_truncated_file_gives_its_whole_entries_and_one_refusal() -> None:
    name = "malformed-07-truncated-fixture.xml"

    assert (10, [(f"{name}#10", "F4")], []) == outcome(name)


def test_an_empty_urlset_is_noted_and_a_commented_entry_stays_unread() -> None:
    for name in ("empty-01-ucsd-library.xml", "news-04-empty-eauenergie.xml"):
        assert (0, [], [(name, "F12", 1)]) == outcome(name)


def test_a_wrong_namespace_is_noted_once() -> None:
    name = "ns-01-https-pdf4teachers.xml"

    assert (7, [], [(name, "F1", 1)]) == outcome(name)


def test_white_space_and_cdata_around_addresses_are_trimmed() -> None:
    for name in ("locws-01-ucsd-begin-101hosts.xml", "aioseo-01-robwillis-post-cdata.xml"):
        locs = [item.loc for item in read(str(CORPUS / name)) if isinstance(item, SourceRecord)]

        assert [loc.strip(" \t\r\n") for loc in locs] == locs
        assert not any("CDATA" in loc for loc in locs)


def test_elements_that_are_not_read_are_one_note_with_their_counts() -> None:
    """PROTOCOL C0, and I2, V9: the deprecated ones are named, once for each file."""
    items = list(read(str(CORPUS / "video-02-hebdenbridge.xml")))
    notes = {(item.rule, item.detail): item.count for item in items if isinstance(item, Note)}

    assert notes == {
        ("C0", "left out of the pages read: mobile:mobile=74"): 74,
        ("I2", "image:caption has no effect any more"): 66,
        ("I2", "image:title has no effect any more"): 66,
        ("V9", "video:category has no effect any more"): 6,
    }


def test_rss_dates_become_w3c_dates() -> None:
    first = next(read(str(CORPUS / "feed-02-koalite-rss.xml")))

    assert isinstance(first, SourceRecord)
    assert first.lastmod == "2025-12-19T09:19:56+00:00"


def test_two_readings_of_one_file_are_the_same() -> None:
    source = str(CORPUS / "malformed-03-ucsd-kba-amp.xml")

    assert list(read(source)) == list(read(source))
