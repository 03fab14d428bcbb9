"""Pages that stay broken leave the sitemap where that is configured, and return when they heal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest
import redis

from tests.integration.looks.visited import GONE, Visited, Website, page
from tests.unit.worker.sources.cms import Reply

UNLIST = {"broken": "unlist"}


class Make(Protocol):
    def __call__(self, **options: Any) -> Visited: ...


@pytest.fixture
def make(store: redis.Redis, tmp_path: Path, web: tuple[Website, str]) -> Make:
    def made(**options: Any) -> Visited:
        pages = UNLIST | options.pop("pages", {})
        return Visited(store, tmp_path / "public", *web, pages=pages, **options)

    return made


def test_a_page_that_stays_broken_leaves_and_returns_when_it_is_good(make: Make) -> None:
    site = make(feed=True)
    site.there("/a", id="7", lastmod="2026-01-01")
    site.there("/b", lastmod="2026-01-01")
    before = site.rig.listed()
    site.web.pages["/a"] = GONE
    site.look(4)

    assert site.listed == {"/b"}
    assert "unlisted: answers 404" in site.rig.reasons()
    site.rig.check_consistency()
    assert site.look(2, again=True) == ["/a", "/a"]
    assert site.listed == {"/b"}

    site.web.pages["/a"] = page()
    site.look(again=True)
    assert site.rig.listed() == before
    assert "listed again: 200 and indexable" in site.rig.reasons()
    assert (site.broken(), site.store.unlisted(site.loc("/a"))) == ({}, None)
    site.rig.check_consistency()


def test_news_titles_and_feeds_return_with_the_page(make: Make) -> None:
    site = make(feed=True, outputs={"llms": True, "html": True}, sections={"news": {"news": True}})
    now = datetime.now(UTC).isoformat(timespec="seconds")
    news = {
        "publication": {"name": "N", "language": "en"}, "publication_date": now, "title": "Now",
    }  # fmt: skip
    site.there("/a", lastmod=now, news=news, title="Titled", description="In a sentence.")
    site.there("/b", lastmod="2026-01-01")
    names = ("pages-1.xml", "news-1.xml", "llms.txt", "atom.xml", "sitemap-pages-1-1.html")
    before = {name: (site.rig.root / name).read_bytes() for name in names}
    site.web.pages["/a"] = GONE
    site.look(4)
    assert site.listed == {"/b"}
    assert not any(
        b"/a<" in path.read_bytes() or b"/a)" in path.read_bytes()
        for name in names
        if (path := site.rig.root / name).exists()
    )

    site.web.pages["/a"] = page()
    site.look(again=True)
    assert {name: (site.rig.root / name).read_bytes() for name in names} == before
    site.rig.check_consistency()
    site.rig.do({
        "type": "upsert", "loc": site.loc("/a"), "lastmod": now, "news": news, "title": "Titled",
        "description": "In a sentence.",
    })  # fmt: skip
    assert (site.rig.root / "atom.xml").read_bytes() == before["atom.xml"]


def test_one_look_unlists_nothing(make: Make) -> None:
    site = make(pages={"confirm_minutes": 5})
    site.there("/a")
    site.web.pages["/a"] = GONE

    site.look(4)
    assert (site.web.visits, site.listed) == (["/a"], {"/a"})


@pytest.mark.parametrize("reply", [Reply(b"", 500), Reply(b"{}", 200, {"Content-Type": "a/b"})])
def test_what_may_pass_or_is_only_odd_unlists_nothing(make: Make, reply: Reply) -> None:
    site = make()
    site.there("/a")
    site.web.pages["/a"] = reply

    site.look(6, again=True)
    assert site.broken()["/a"].times == 6
    assert site.listed == {"/a"}


def test_a_newer_event_lists_the_page_and_an_older_one_does_not(make: Make) -> None:
    site = make()
    site.there("/a", version=1_700_000_000_000, lastmod="2026-01-01")
    site.web.pages["/a"] = GONE
    site.look(3)
    assert site.listed == set()

    site.rig.do({"type": "upsert", "loc": site.loc("/a"), "version": 1_600_000_000_000})
    assert site.listed == set()
    site.rig.do({"type": "upsert", "loc": site.loc("/a"), "lastmod": "2026-02-02"})
    assert site.rig.listed() == {site.loc("/a"): "2026-02-02"}
    site.web.pages["/a"] = page()
    site.look(3, again=True)
    assert site.rig.listed() == {site.loc("/a"): "2026-02-02"}


def test_a_page_that_was_deleted_meanwhile_does_not_return(make: Make) -> None:
    site = make()
    site.there("/a", id="7")
    site.web.pages["/a"] = GONE
    site.look(3)
    site.rig.do({"type": "delete", "id": "7"})

    site.web.pages["/a"] = page()
    assert site.look(3, again=True) == []
    assert site.listed == set()
    assert site.store.unlisted(site.loc("/a")) is None


def test_the_versions_of_an_unlisted_page_name_it_no_more_and_again(make: Make) -> None:
    site = make()
    for code in ("de", "en", "fr"):
        site.web.pages[f"/{code}"] = page(lang=code)
    site.rig.do(*(
        {"type": "upsert", "loc": site.loc(f"/{code}"), "group": "g", "lang": code}
        for code in ("de", "en", "fr")
    ))  # fmt: skip
    before = {name: file.content for name, file in site.rig.files().items() if "pages" in name}
    site.web.pages["/de"] = GONE
    site.look(5)
    assert site.listed == {"/en", "/fr"}
    text = b"".join(file.content for file in site.rig.files().values())
    assert f'href="{site.loc("/de")}"'.encode() not in text
    site.rig.check_consistency()

    site.web.pages["/de"] = page(lang="de")
    site.look(3, again=True)
    assert {n: f.content for n, f in site.rig.files().items() if "pages" in n} == before
    site.rig.check_consistency()


def test_many_broken_pages_at_once_are_rather_the_fault_of_the_server(make: Make) -> None:
    site = make(shrink_share=1)
    site.there(*(f"/{n}" for n in range(30)))
    site.look(31)
    site.web.pages = {}
    site.round()

    site.look(80, again=True)
    assert len(site.listed) >= 15
    assert site.rig.reasons().count("unlisted: answers 404") <= 11


def test_pages_that_were_unlisted_before_the_round_reached_them_are_in_its_sample(
    make: Make,
) -> None:
    site = make(shrink_share=1)
    settings = site.rig.site.pages
    assert settings is not None
    site.there(*(f"/{n}" for n in range(40)))
    site.look(2)  # the round is at its beginning
    site.web.pages["/40"] = site.web.pages["/41"] = GONE
    site.there("/40", "/41")
    site.look(8)
    assert site.listed == {f"/{n}" for n in range(40)}

    site.look(50)
    summary = site.summary
    assert summary is not None
    assert (summary.looked, summary.failed, summary.complete) == (42, 2, True)
    assert summary.alarms(settings) == ["4.8 % of the pages in a sample are broken: 2 of 42."]
    site.round()
    site.look(50)
    summary = site.summary
    assert summary is not None
    assert (summary.looked, summary.failed, summary.alarms(settings)) == (40, 0, [])


def test_pages_that_break_after_the_round_saw_them_are_in_its_sample(make: Make) -> None:
    site = make(shrink_share=1)
    site.there("/a", "/b", "/c")
    assert sorted(site.look(4)) == ["/a", "/b", "/c"]
    site.web.pages["/a"] = GONE
    site.there("/a", lastmod="2026-01-01")
    site.look(1)
    site.look(2, again=True)
    assert site.listed == {"/b", "/c"}
    summary = site.summary
    assert summary is not None
    assert (summary.looked, summary.failed) == (3, 1)

    site.web.pages["/a"] = page()
    site.look(2, again=True)
    assert site.listed == {"/a", "/b", "/c"}
    summary = site.summary
    assert summary is not None
    assert (summary.looked, summary.failed) == (3, 0)


def test_pages_that_were_unlisted_before_the_first_round_are_in_the_sample_before_it(
    make: Make,
) -> None:
    site = make(shrink_share=1)
    site.look()  # nothing is listed so far
    site.web.pages["/8"] = site.web.pages["/9"] = GONE
    site.there(*(f"/{n}" for n in range(10)))

    while not site.store.state().began:
        site.look()
    state = site.store.state()
    assert (state.looked_before, state.failed_before) == (10, 2)
    assert site.listed == {f"/{n}" for n in range(8)}


def test_what_was_unlisted_returns_when_that_is_switched_off(make: Make, web: Any) -> None:
    site = make()
    site.there("/a")
    site.web.pages["/a"] = GONE
    site.look(3)
    assert site.listed == set()

    warned = Visited(site.client, site.rig.root, *web, pages={"broken": "warn"})
    warned.look(2, again=True)
    assert warned.listed == {"/a"}
