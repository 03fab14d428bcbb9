"""Fragments whose loc contains a text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.sitemap.xml_text import escape

PATHS = st.lists(st.text("abA/&'?=url.loc-", max_size=12), unique=True, max_size=12)


@given(PATHS, st.text("abA/&'?=url.loc-<>", min_size=1, max_size=5))
def test_those_are_found_whose_loc_contains_the_part_and_no_others(
    paths: list[str], part: str
) -> None:
    entries = [Entry(f"https://www.example.com/{path}", lastmod="2026-11-01") for path in paths]
    raw = b"".join(map(fragments.render, entries))
    wanted = escape(part).encode().lower()

    found = [fragments.parse(each) for each in fragments.matching(raw, wanted)]

    assert found == [each for each in entries if escape(part).lower() in escape(each.loc).lower()]


def test_an_empty_part_ends_with_the_last_fragment() -> None:
    raw = fragments.render(Entry("https://www.example.com/a"))

    assert list(fragments.matching(raw, b"")) == [raw]
    assert list(fragments.matching(b"", b"a")) == []
