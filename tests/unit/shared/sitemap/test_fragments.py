"""A fragment is its entry: well formed, ordered by the schema, and safe to cut by its marks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from shared.config.sites.site import SMALLEST_SHARD
from shared.sitemap import fragments, urls
from shared.sitemap.entry import Entry
from shared.sitemap.extensions.alternates import Alternates
from shared.sitemap.shards import Limits
from shared.sitemap.xml_text import escape
from tests.unit.strategies import ROOT, alternate_sets, entries, extended_entries, locs

SCHEMA = Path(__file__).parents[3] / "schema" / "urlset.rng"
ORDER = ["loc", "lastmod", "changefreq", "priority"]
FULL = Entry("https://www.example.com/a?b=1&c='2'", "2026-11-21", "daily", "0.5")


def children(fragment: bytes) -> list[tuple[str, str | None]]:
    """Names and texts of the children of `<url>`, as another parser reads them."""
    return [(child.tag, child.text) for child in etree.fromstring(fragment)]


def test_a_full_entry_is_one_line_with_its_children_in_the_order_of_the_schema() -> None:
    line = (
        b"<url><loc>https://www.example.com/a?b=1&amp;c=&apos;2&apos;</loc>"
        b"<lastmod>2026-11-21</lastmod><changefreq>daily</changefreq><priority>0.5</priority></url>\n"
    )

    assert line == fragments.render(FULL)


def test_what_is_not_known_is_left_out() -> None:
    assert fragments.render(Entry("https://a.b/")) == b"<url><loc>https://a.b/</loc></url>\n"


@given(entries)
def test_another_parser_reads_the_entry_from_its_fragment(entry: Entry) -> None:
    values = zip(ORDER, (entry.loc, entry.lastmod, entry.changefreq, entry.priority), strict=True)

    assert [(n, v) for n, v in values if v is not None] == children(fragments.render(entry))


@given(extended_entries)
def test_parsing_undoes_rendering(entry: Entry) -> None:
    fragment = fragments.render(entry)

    assert entry == fragments.parse(fragment)
    assert entry.loc == fragments.loc_of(fragment)


@given(extended_entries)
def test_the_marks_by_which_blocks_are_cut_stand_at_both_ends_and_nowhere_else(
    entry: Entry,
) -> None:
    fragment = fragments.render(entry)

    assert fragment.startswith(fragments.key(entry.loc))
    assert fragments.key(entry.loc).startswith(fragments.START)
    assert fragment.endswith(fragments.END)
    assert fragment.count(b"\n") == fragment.count(fragments.START) == 1
    assert fragment.count(fragments.END) == fragment.count(fragments.LOC_END) == 1


@given(locs, locs)
def test_no_key_begins_the_key_of_another_page(one: str, other: str) -> None:
    assert (one == other) == fragments.key(one).startswith(fragments.key(other))


@given(extended_entries, extended_entries)
def test_fragments_and_digests_differ_exactly_where_entries_do(one: Entry, other: Entry) -> None:
    a, b = fragments.render(one), fragments.render(other)

    assert (one == other) == (a == b) == (fragments.digest(a) == fragments.digest(b))
    assert len(fragments.digest(a)) == 5


@given(extended_entries, alternate_sets)
def test_alternates_are_replaced_in_a_fragment_as_if_it_had_been_rendered_with_them(
    entry: Entry, others: Alternates
) -> None:
    """PROTOCOL H3: whoever joins or leaves a group changes every member's fragment."""
    wanted = fragments.render(replace(entry, alternates=others))

    assert wanted == fragments.with_alternates(fragments.render(entry), others)


@given(st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs"])) | st.just("&'\"<>"))
def test_escaped_text_holds_none_of_the_five_characters_bare_and_reads_back(text: str) -> None:
    escaped = escape(text)

    assert not set("'\"<>") & set(escaped)
    assert escaped.count("&") == sum(map(text.count, "&'\"<>"))
    if "\ufffe" not in text and "\uffff" not in text:  # not XML; no loc holds them, all are ASCII
        assert text == (etree.fromstring(f"<a>{escaped}</a>").text or "")


@given(
    st.lists(entries | extended_entries, min_size=1, max_size=5, unique_by=lambda entry: entry.loc)
)
def test_a_file_of_fragments_is_valid_by_the_schema(listed: list[Entry]) -> None:
    """PROTOCOL F5, F6, C0: namespaces are declared where they are used, and only there."""
    content = b"".join(map(fragments.render, listed))
    start = fragments.urlset_start(fragments.uses(content))
    data = start + content + fragments.URLSET_END
    schema = etree.RelaxNG(etree.parse(SCHEMA))

    parsed = etree.fromstring(data)
    schema.assertValid(parsed)
    assert {child.prefix for child in parsed.iter()} == set(parsed.nsmap)
    assert len(data) - len(content) <= fragments.OVERHEAD


@pytest.mark.parametrize(
    ("head", "root"),
    [(fragments.urlset_start(), "urlset"), (fragments.index_start(), "sitemapindex")],
)
def test_a_file_begins_with_its_declaration_and_the_root_in_the_http_namespace(
    head: bytes, root: str
) -> None:
    """PROTOCOL F1 to F3: the declaration is the first bytes, the namespace is http on purpose."""
    parsed = etree.fromstring(head + f"</{root}>".encode())

    assert head.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n')
    assert f"{{http://www.sitemaps.org/schemas/sitemap/0.9}}{root}" == parsed.tag
    assert b"xml-stylesheet" in etree.tostring(parsed.getprevious())


def test_a_line_of_an_index_is_escaped_too() -> None:
    line = fragments.index_line("https://a.b/x'y&z.xml", 1_795_219_200)

    assert line.count(b"\n") == 1
    assert children(line) == [("loc", "https://a.b/x'y&z.xml"), ("lastmod", "2026-11-21T00:00:00Z")]


def test_the_longest_fragment_fits_into_the_smallest_shard_that_can_be_configured() -> None:
    loc = ROOT.prefix + "'" * (urls.MAX_LENGTH - len(ROOT.prefix))
    assert loc == urls.canonical(loc, ROOT)
    longest = fragments.render(Entry(loc, "2026-11-21T00:00:00Z", "monthly", "0." + "1" * 16))

    assert len(longest) > 12_000
    assert len(longest) < Limits(size=SMALLEST_SHARD).soft
