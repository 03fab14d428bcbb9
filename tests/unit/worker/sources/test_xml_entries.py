"""Entries of a sitemap: what is read, what is repaired, what is refused, and why."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.worker.sources.reading import NS, Put, split, urlset
from worker.sources import Note, RecordRefusal, SourceRecord, read, source_streams
from worker.sources.xml import xml_splitter


def test_all_four_fields_are_read_as_they_stand(put: Put) -> None:
    entry = (
        "<loc>\n https://a.example/?x=1&amp;y=2 </loc><lastmod>2026-01</lastmod>"
        "<changefreq>Often</changefreq><priority>7</priority>"
    )
    expected = SourceRecord(
        loc="https://a.example/?x=1&y=2",
        where="s.xml#1",
        lastmod="2026-01",
        changefreq="Often",
        priority="7",
    )

    assert [expected] == list(read(put(urlset(entry))))


def test_prefixed_and_namespaceless_sitemaps_are_read(put: Put) -> None:
    prefixed = (
        '<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9">'
        "<s:url><s:loc>https://a.example/</s:loc></s:url></s:urlset>"
    )

    assert split(put(prefixed)) == (["https://a.example/"], [], [])
    bare = urlset("<loc>https://a.example/</loc>", attributes="")
    assert split(put(bare)) == (["https://a.example/"], [], [("s.xml", "F1")])


def test_ampersands_in_cdata_are_kept_and_bare_ones_beside_them_escaped(put: Put) -> None:
    source = put(
        urlset(
            "<loc><![CDATA[https://a.example/?a=1&b=2&amp;c]]></loc>",
            "<loc>https://a.example/?a=1&b=2&amp;c=3&#38;d</loc><x><![CDATA[&]]></x>",
        )
    )
    locs, refusals, _ = split(source)

    assert locs == ["https://a.example/?a=1&b=2&amp;c", "https://a.example/?a=1&b=2&c=3&d"]
    assert refusals == []


def test_an_undefined_entity_in_an_address_is_refused_and_elsewhere_harmless(put: Put) -> None:
    source = put(
        urlset(
            "<loc>https://a.example/caf&eacute;</loc>",
            "<loc>https://a.example/b</loc><title>x&nbsp;y</title>",
        )
    )
    locs, refusals, _ = split(source)

    assert locs == ["https://a.example/b"]
    assert refusals == [("s.xml#1", "F4")]


@pytest.mark.parametrize(
    "bad", ["<loc>https://a.example/\x0b</loc>", "<loc>https://a.example/</lok>", "<loc>&#0;</loc>"]
)
def test_a_fault_costs_the_entry_it_is_in_and_no_other(put: Put, bad: str) -> None:
    source = put(urlset("<loc>https://a.example/1</loc>", bad, "<loc>https://a.example/3</loc>"))
    locs, refusals, _ = split(source)

    assert locs == ["https://a.example/1", "https://a.example/3"]
    assert refusals == [("s.xml#2", "F4")]


def test_invalid_utf8_costs_one_entry(put: Put) -> None:
    data = urlset("<loc>https://a.example/?</loc>", "<loc>https://a.example/2</loc>").encode()

    assert split(put(data.replace(b"/?", b"/\xff"))) == (
        ["https://a.example/2"],
        [("s.xml#1", "F4")],
        [],
    )


def test_the_fault_is_placed_in_the_document_not_in_the_piece(put: Put) -> None:
    one_line = (
        f"<urlset {NS}><url><loc>https://a.example/</loc></url><url><loc></lok></url></urlset>"
    )
    (refusal,) = [item for item in read(put(one_line)) if isinstance(item, RecordRefusal)]

    assert f"(line 1, column {one_line.index('</lok>') + 7})" in refusal.detail


def test_a_missing_end_tag_before_the_next_entry_is_supplied_and_noted(put: Put) -> None:
    text = urlset("<loc>https://a.example/1</loc>", "<loc>https://a.example/2</loc>")
    locs, refusals, notes = split(put(text.replace("</url>", "", 1)))

    assert locs == ["https://a.example/1", "https://a.example/2"]
    assert (refusals, notes) == ([], [("s.xml#1", "F4")])


def test_an_undeclared_prefix_costs_no_page(put: Put) -> None:
    text = urlset(
        "<loc>https://a.example/1</loc><image:image><image:loc>x</image:loc></image:image>",
        "<loc>https://a.example/2</loc>",
        attributes=f'{NS} xsi:schemaLocation="a b"',
    )
    locs, refusals, notes = split(put(text))

    assert (len(locs), refusals) == (2, [])
    assert notes == [("s.xml", "F6"), ("s.xml", "F6"), ("s.xml", "C0")]


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("<lastmod>2026-01-01</lastmod>", "F13"),
        ("<loc> </loc>", "F13"),
        ("<loc>https://a.example/</loc><loc>https://a.example/</loc>", "F13"),
        ("<loc><b>https://a.example/</b></loc>", "F13"),
        ("<loc>https://a.example/\ufffd</loc>", "L3"),
    ],
)
def test_an_entry_without_one_certain_address_is_refused(put: Put, entry: str, rule: str) -> None:
    assert ([], [("s.xml#1", rule)]) == split(put(urlset(entry)))[:2]


def test_lastmods_that_contradict_each_other_are_none(put: Put) -> None:
    entry = (
        "<loc>https://a.example/</loc><lastmod>2026-01-01</lastmod><lastmod>2026-01-02</lastmod>"
    )
    record, note = read(put(urlset(entry)))

    assert isinstance(record, SourceRecord)
    assert record.lastmod is None
    assert isinstance(note, Note)


def test_text_behind_the_end_is_refused_once(put: Put) -> None:
    text = urlset("<loc>https://a.example/</loc>")

    assert split(put(text + text)) == (["https://a.example/"], [("s.xml", "F4")], [])


def test_a_document_cut_inside_an_entry_gives_one_refusal(put: Put) -> None:
    text = urlset("<loc>https://a.example/1</loc>", "<loc>https://a.example/2</loc>")
    cut = text[: text.index("/2</loc>")]

    assert split(put(cut)) == (["https://a.example/1"], [("s.xml#2", "F4")], [])


LAUGHS = '<!DOCTYPE urlset [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
EXTERNAL = '<!DOCTYPE urlset [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize("doctype", [LAUGHS, EXTERNAL, '<!DOCTYPE urlset SYSTEM "http://x/">'])
def test_a_doctype_is_refused_and_nothing_is_read(put: Put, doctype: str) -> None:
    text = urlset("<loc>https://a.example/&a;&b;</loc>").replace("<urlset", f"{doctype}<urlset", 1)

    assert split(put(text)) == ([], [("s.xml", "F3")], [])


def test_an_entity_declared_in_the_middle_takes_no_effect(put: Put) -> None:
    text = urlset("<loc>https://a.example/1</loc>", f"{EXTERNAL}<loc>https://a.example/&a;</loc>")

    assert split(put(text))[:2] == (["https://a.example/1"], [("s.xml#2", "F4")])


URL = "<url><loc>https://a.example/"
parts = st.sampled_from(
    (
        f"{URL}1</loc></url>",
        f"\n{URL}2</loc>\n <lastmod>2026-01-01</lastmod><priority>0.5</priority></url>\r\n",
        f"{URL}3</loc><changefreq>daily</changefreq></url>",
        "<url><loc> https://a.example/3</loc></url>",
        f"{URL}?a&amp;b</loc></url>",
        f"{URL}?a&b</loc></url>",
        "<url><loc></loc></url>",
        "<url/>",
        "\v",
        f"{URL}4</loc><loc>https://a.example/5</loc></url>",
        f"<!-- {URL}6</loc></url> -->",
        "text",
        f"{URL}7",
        f"{URL}8</loc><lastmod>2026</lastmod><x/></url>",
        "</urlset>",
        "<url><lastmod>2026-01-01</lastmod><loc>https://a.example/9</loc></url>",
        "<p:url/>",
        f"<other>{URL}10</loc></url></other>",
        "<![CDATA[<url>]]>",
    )
)


@given(st.lists(parts, max_size=12), st.integers(1, 300))
def test_plain_entries_read_without_a_parser_are_what_the_parser_reads(
    tmp_path_factory: pytest.TempPathFactory, content: list[str], chunk: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "plain.xml"
    path.write_text(f"<urlset {NS}>{''.join(content)}</urlset>")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(source_streams, "CHUNK", chunk)
        items = list(read(str(path)))
        patched.setattr(xml_splitter, "_PLAIN_RUN", re.compile(rb"(?!)"))
        parsed = list(read(str(path)))

    # Content beside the entries is refused after the entries that were parsed with it.
    pages = [item for item in items if isinstance(item, SourceRecord)]
    assert pages == [item for item in parsed if isinstance(item, SourceRecord)]
    assert sorted(map(repr, items)) == sorted(map(repr, parsed))
