"""The HTML sitemap for visitors, read by a strict parser of HTML."""

from __future__ import annotations

from typing import Any

import html5lib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.sitemap import html_writer
from shared.sitemap.shards import Shard
from shared.sitemap.xml_text import legal

BASE = "https://www.example.com/"
# Of what XML can hold, HTML refuses control characters and those that are none.
HOSTILE = st.text(
    st.sampled_from("<>&\"'=/!-; \t") | st.characters(codec="utf-8"), max_size=30
).map(lambda text: "".join(c for c in legal(text) if c.isprintable() or c in " \t"))
PATHS = st.text("ab&<>'\"%20;=?/", max_size=15)
SHARDS = st.builds(
    Shard, st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True), st.integers(1, 99)
)


def parsed(content: bytes) -> Any:
    """The document; any error of its HTML is raised."""
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(content)
    assert tree.find("head/title").text.strip()
    assert tree.get("lang") == "en"
    assert [each.tag for each in tree.find("body")] == ["header", "main"]
    assert len([*tree.iter("h1")]) == 1
    assert not [*tree.iter("script")]
    return tree


@given(HOSTILE, SHARDS, st.lists(st.tuples(PATHS, HOSTILE), min_size=1, max_size=5))
def test_every_page_is_one_link_with_its_title(
    site: str, shard: Shard, pages: list[tuple[str, str]]
) -> None:
    links = [(BASE + path, title) for path, title in pages]

    tree = parsed(html_writer.page(f"S{site}", shard, 1, 1, links))

    found = [(each.get("href"), each.text) for each in tree.find("body/main/ul").iter("a")]
    assert found == [(loc, title or html_writer.readable(loc)) for loc, title in links]
    assert all(text for _, text in found)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_each_page_links_to_all_of_its_shard_and_says_which_it_is(number: int) -> None:
    tree = parsed(html_writer.page("S", Shard("posts", 2), number, 3, [(BASE, "Home")]))

    links = [*tree.find("body/main/nav").iter("a")]
    named = {each.get("href") for each in links}
    assert named == {f"sitemap-posts-2-{n}.html" for n in (1, 2, 3)}
    (current,) = (each for each in links if each.get("aria-current") == "page")
    assert current.text == str(number)
    rels = {each.get("rel"): each.get("href") for each in links if each.get("rel")}
    assert rels == {
        rel: f"sitemap-posts-2-{n}.html"
        for rel, n in (("prev", number - 1), ("next", number + 1))
        if 1 <= n <= 3
    }
    assert tree.find("body/header/h1").text == f"Posts, part 2, page {number} of 3"


@given(HOSTILE, st.lists(SHARDS, min_size=1, max_size=6, unique=True))
def test_the_contents_lead_to_the_first_page_of_each_file(site: str, shards: list[Shard]) -> None:
    sections: dict[str, list[Shard]] = {}
    for shard in sorted(shards):
        sections.setdefault(shard.section, []).append(shard)

    tree = parsed(html_writer.contents(f"S{site}", sections))

    found = {each.get("href") for each in tree.iter("a")}
    assert found == {html_writer.name_of(shard, 1) for shard in shards}
    idents = [each.get("id") for each in tree.iter("h2")]
    assert idents == [each.get("aria-labelledby") for each in tree.iter("section")]
    assert len(set(idents)) == len(sections)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("", "/"), ("a/b-c", "/a/b-c"), ("caf%C3%A9", "/caf\u00e9"), ("a?x=%26&y=1", "/a?x=&&y=1"),
        ("%FF", "/%FF"), ("a%0Ab", "/a%0Ab"), ("%E2%80%AE", "/%E2%80%AE"),
    ],
)  # fmt: skip
def test_a_page_without_a_title_is_shown_by_its_readable_path(path: str, shown: str) -> None:
    assert html_writer.readable(BASE + path) == shown


@given(SHARDS, st.integers(1, 999_999))
def test_a_name_is_read_as_it_was_made(shard: Shard, number: int) -> None:
    assert html_writer.parse_name(html_writer.name_of(shard, number)) == (shard, number)


@given(st.binary(max_size=80))
def test_only_pages_of_ours_are_ours(content: bytes) -> None:
    whole = html_writer.contents("S", {})

    assert all(html_writer.is_ours(whole[:n]) for n in range(1, len(whole)))
    assert html_writer.is_ours(content) == (bool(content) and whole.startswith(content[:40]))
