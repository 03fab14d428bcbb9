"""What stands outside the entries of a sitemap is refused by its name, never passed over."""

from __future__ import annotations

import gzip

import pytest

from tests.unit.worker.sources.reading import NS, Put, split, urlset
from worker.sources import RecordRefusal, SourceRecord, read

SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
ONE = "<url><loc>https://a.example/1</loc></url>"
TWO = "<url><loc>https://a.example/2</loc></url>"


def wrapped(*content: str) -> str:
    return f"<urlset {NS}>{''.join(content)}</urlset>"


def refusals(source: str) -> list[RecordRefusal]:
    return [item for item in read(source) if isinstance(item, RecordRefusal)]


@pytest.mark.parametrize(
    ("stray", "shown", "loc"),
    [
        ("<Url><loc>https://a.example/9</loc></Url>", "<Url>", "https://a.example/9"),
        ("<URL><LOC>https://a.example/9</LOC></URL>", "<URL>", "https://a.example/9"),
        ("<loc>https://a.example/9</loc>", "<loc>", "https://a.example/9"),
        ("<page><loc>https://a.example/9</loc></page>", "<page>", "https://a.example/9"),
        ("<sitemap><loc>https://a.example/9.xml</loc></sitemap>", "<sitemap>",
         "https://a.example/9.xml"),
        ('<x:url xmlns:x="urn:x"><x:loc>https://a.example/9</x:loc></x:url>', "<urn:x:url>",
         "https://a.example/9"),
        ("https://a.example/9", "https://a.example/9", None),
        ("<lastmod>2026-01-01</lastmod>", "<lastmod>", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["before", "between", "behind"])
def test_what_is_outside_of_url_is_refused_by_its_name(
    put: Put, stray: str, shown: str, loc: str | None, place: str
) -> None:
    """PROTOCOL F13, F14."""
    order = {"before": (stray, ONE, TWO), "between": (ONE, stray, TWO), "behind": (ONE, TWO, stray)}
    items = list(read(put(wrapped(*order[place]))))

    assert [i.loc for i in items if isinstance(i, SourceRecord)] == [
        "https://a.example/1", "https://a.example/2",
    ]  # fmt: skip
    (refusal,) = [item for item in items if isinstance(item, RecordRefusal)]
    assert (refusal.where, refusal.rule, refusal.loc) == ("s.xml", "F13", loc)
    assert shown in refusal.detail


def test_each_of_many_strays_is_refused_with_its_line(put: Put) -> None:
    strays = "\n".join(f"<Url><loc>https://a.example/{n}</loc></Url>" for n in range(3))
    found = refusals(put(wrapped("\n", strays)))

    assert [refusal.loc for refusal in found] == [f"https://a.example/{n}" for n in range(3)]
    assert [refusal.detail.partition("(")[2] for refusal in found] == [
        "line 2)", "line 3)", "line 4)",
    ]  # fmt: skip


def test_a_stray_beside_an_entry_that_is_repaired_is_refused_too(put: Put) -> None:
    bare = "<url><loc>https://a.example/?a&b</loc></url><Url/>"

    assert split(put(wrapped(bare, ONE))) == (
        ["https://a.example/?a&b", "https://a.example/1"], [("s.xml", "F13")], [("s.xml#1", "F4")],
    )  # fmt: skip


def test_a_page_in_an_index_is_refused_and_its_files_are_read(put: Put) -> None:
    put(urlset("<loc>https://a.example/1</loc>"), "one.xml")
    child = "<sitemap><loc>https://a.example/one.xml</loc></sitemap>"
    index = put(f"<sitemapindex {NS}>{ONE}{child}{TWO}</sitemapindex>", "index.xml")

    assert split(index) == (
        ["https://a.example/1"], [("index.xml", "F13"), ("index.xml", "F13")], [],
    )  # fmt: skip


def test_elements_of_other_namespaces_are_allowed_and_counted(put: Put) -> None:
    """The schema allows any before the entries: no page is meant by them."""
    foreign = '<x:generator xmlns:x="urn:x">CMS 1.0</x:generator>'

    assert split(put(wrapped(foreign, ONE))) == (["https://a.example/1"], [], [("s.xml", "C0")])


@pytest.mark.parametrize("behind", ["<channel>", "</title>", "</item>", "</image>", "</channel>"])
def test_an_item_of_another_spelling_in_a_feed_is_refused(put: Put, behind: str) -> None:
    feed = (
        '<rss version="2.0"><channel><title>T</title><item><link>https://a.example/1</link></item>'
        "<image><url>https://a.example/i.png</url></image></channel></rss>"
    )
    stray = f"{behind}<Item><link>https://a.example/9</link></Item>"

    assert split(put(feed)) == (["https://a.example/1"], [], [("s.xml", "partial")])
    (refusal,) = refusals(put(feed.replace(behind, stray)))
    assert (refusal.rule, refusal.loc) == ("F13", "https://a.example/9")


def test_entries_before_the_markup_or_behind_an_empty_root_are_refused(put: Put) -> None:
    assert split(put(f"{ONE}{wrapped(TWO)}")) == (
        ["https://a.example/2"], [("s.xml", "F3")], [("s.xml", "F3")],
    )  # fmt: skip
    assert split(put(f"<urlset {NS}/>{ONE}"))[:2] == ([], [("s.xml", "F4")])
    assert split(put(f"<urlset {NS}/>\n<!-- the end -->\n"))[:2] == ([], [])


PLAIN, PREFIXED = "<url><loc>{}</loc></url>", "<s:url><s:loc>{}</s:loc></s:url>"
MIXED = (
    ("<urlset {NS} {S}>", PREFIXED, PLAIN, "</urlset>"),
    ("<s:urlset {NS} {S}>", PLAIN, PREFIXED, "</s:urlset>"),
    ("<urlset {NS}>", PREFIXED.replace("<s:url>", "<s:url {S}>"), PLAIN, "</urlset>"),
    ("<s:urlset {S}>", PLAIN.replace("<url>", "<url {NS}>"), PREFIXED, "</s:urlset>"),
    ("<urlset {NS} xmlns:x='urn:x'>", PLAIN, f"<!-- -->{PLAIN}".replace("<loc>", "<x:url/><loc>"),
     "</urlset>"),
)  # fmt: skip


@pytest.mark.parametrize("document", MIXED)
def test_entries_are_known_by_their_namespace_whatever_their_prefix(
    put: Put, document: tuple[str, str, str, str]
) -> None:
    """PROTOCOL F1: a prefix is a name of the moment."""
    first, one, two, last = document
    text = (
        first
        + one.replace("{}", "https://a.example/1")
        + two.replace("{}", "https://a.example/2")
        + last
    )
    filled = text.replace("{NS}", NS).replace("{S}", f'xmlns:s="{SPACE}"')
    locs, refused, _ = split(put(filled))

    assert (locs, refused) == (["https://a.example/1", "https://a.example/2"], [])


def test_an_index_lists_its_files_under_any_prefix(put: Put) -> None:
    put(gzip.compress(urlset("<loc>https://a.example/1</loc>").encode()), "one.xml.gz")
    child = "<s:sitemap><s:loc>https://a.example/one.xml.gz</s:loc></s:sitemap>"
    index = f'<sitemapindex {NS} xmlns:s="{SPACE}">{child}</sitemapindex>'

    assert split(put(index, "index.xml")) == (["https://a.example/1"], [], [])
