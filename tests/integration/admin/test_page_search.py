"""Search among published pages: other spellings of a URL, parts of a URL, what is not published."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from shared.admin.page_search import PageSearch, spellings
from shared.sitemap import urls
from tests.integration.rig import BASE, Rig

EVERY_S = 60.0


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    """Pages in several files."""
    rig = Rig(store, tmp_path, shard_urls=2, sections={"posts": {}})
    rig.do(
        {"type": "upsert", "loc": "about/", "lastmod": "2026-11-01"},
        *({"type": "upsert", "section": "posts", "loc": f"p/{n}"} for n in range(5)),
        {"type": "upsert", "loc": "a%2Fb?x=1&y=2"},
    )
    return rig


def search(rig: Rig) -> PageSearch:
    return PageSearch(rig.client, rig.name, rig.site)


def test_a_listed_page_is_found_with_its_file_and_date(rig: Rig) -> None:
    found = search(rig).listing(f"{BASE}about/")

    assert found.loc == f"{BASE}about/"
    assert found.page == (f"{BASE}about/", "pages-1.xml", "2026-11-01")
    assert found.others == []


@pytest.mark.parametrize(
    "written",
    [
        f"{BASE}about", f"{BASE}About/", "http://example.com/about/", "/about", f"{BASE}%61bout/",
        f"{BASE}about/index.html", f"{BASE}about/?utm_source=x", f"{BASE}ABOUT?a#b",
    ],
)  # fmt: skip
def test_another_spelling_of_a_listed_url_is_named(rig: Rig, written: str) -> None:
    found = search(rig).listing(written)

    assert found.page is None
    assert [page.loc for page in found.others] == [f"{BASE}about/"]


def test_what_is_not_published_yet_is_not_listed_and_what_is_removed_is_until_the_file_changes(
    rig: Rig,
) -> None:
    rig.send({"type": "upsert", "loc": "new"}, {"type": "delete", "loc": "p/0"})

    before = [search(rig).listing(f"{BASE}{path}").page is not None for path in ("new", "p/0")]
    rig.settle()
    after = [search(rig).listing(f"{BASE}{path}").page is not None for path in ("new", "p/0")]

    assert (before, after) == ([False, True], [True, False])


def test_a_part_of_a_url_is_found_in_every_file_whatever_its_capitals(rig: Rig) -> None:
    found = search(rig).containing("/P/", seconds=EVERY_S)

    assert sorted(page.loc for page in found.pages) == [f"{BASE}p/{n}" for n in range(5)]
    assert {page.file for page in found.pages} == {f"posts-{n}.xml" for n in (1, 2, 3)}
    assert (found.searched, found.after) == (found.files, "")
    (escaped,) = search(rig).containing("x=1&y", seconds=EVERY_S).pages
    assert escaped.loc == f"{BASE}a%2Fb?x=1&y=2"
    assert search(rig).containing("<url>", seconds=EVERY_S).pages == []


def test_without_time_each_call_searches_one_file_and_goes_on_after_it(rig: Rig) -> None:
    found, after, calls = list[str](), "", 0
    while calls == 0 or after:
        part = search(rig).containing("p/", after=after, seconds=0)
        found += (page.loc for page in part.pages)
        after, calls = part.after, calls + 1

    assert sorted(found) == [f"{BASE}p/{n}" for n in range(5)]
    assert calls == part.files == 4


def test_no_more_pages_are_returned_than_asked_for(rig: Rig) -> None:
    assert len(search(rig).containing(BASE, most=2, seconds=EVERY_S).pages) == 2


@given(st.text(max_size=40), st.sampled_from(["", "/", "https://x.example/", f"{BASE}sub/"]))
def test_every_spelling_of_any_text_is_a_canonical_url_of_the_site(text: str, start: str) -> None:
    base = urls.Base.parse(f"{BASE}sub")
    found = list(spellings(start + text, base))

    assert len(found) <= 24
    assert all(urls.canonical(loc, base) == loc for loc in found)
