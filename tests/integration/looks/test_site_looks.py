"""The pages of a site are looked at, politely and in order, and what is found is kept (L8)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Protocol

import pytest
import redis

from shared.domain.looks.answers import Grade
from shared.store.looks.look_store import LookStore
from tests.integration.looks.visited import GONE, HTML, Visited, Website, page
from tests.integration.rig import check_keys
from tests.unit.worker.sources.cms import Reply
from worker.looks.site_looks import HostSilentError, SiteLooks


class Make(Protocol):
    def __call__(self, **options: Any) -> Visited: ...


@pytest.fixture
def make(store: redis.Redis, tmp_path: Path, web: tuple[Website, str]) -> Make:
    def made(**options: Any) -> Visited:
        return Visited(store, tmp_path / "public", *web, **options)

    return made


def test_each_page_is_looked_at_once_in_a_round_and_the_findings_are_kept(make: Make) -> None:
    site = make()
    site.there("/a", "/b", "/c")
    site.web.pages["/b"] = GONE
    site.web.pages["/c"] = Reply(b"", 301, {"Location": "/a"})

    assert {*site.look(5)} == {"/a", "/b", "/c"}
    assert site.web.visits.count("/a") == 1
    assert site.grade("/a") is Grade.GOOD
    assert site.broken()["/b"].why == "answers 404"
    assert site.broken()["/c"].why == f"redirects to {site.base}a (301)"
    record = site.record("/a")
    assert record is not None
    assert (record.status, record.good_once) == (200, True)
    assert site.listed == {"/a", "/b", "/c"}
    site.rig.check_consistency()
    check_keys(site.client)


def test_a_round_begins_again_after_its_hours_and_not_before(make: Make) -> None:
    site = make()
    site.there("/a", "/b")

    assert sorted(site.look(4)) == ["/a", "/b"]
    assert site.look(3) == []
    site.round()
    assert sorted(site.look(4)) == ["/a", "/b"]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (page(head='<meta name="robots" content="NOINDEX, follow">'), "noindex in its meta robots"),
        (page(head="<meta name=googlebot content=none>"), "noindex in its meta googlebot"),
        (Reply(b"x", 200, HTML | {"X-Robots-Tag": "noindex"}), "noindex in its header"),
        (page(head='<link rel="canonical" href="/other">'), "its canonical URL is"),
        (Reply(b"", 403, HTML), "answers 403"),
        (Reply(b"", 302, {"Location": "https://elsewhere.example/"}), "redirects to https://els"),
        (Reply(b"{}", 200, {"Content-Type": "application/json"}), "is no page"),
        (Reply(b"oops", 500, HTML), "answers 500, which may pass"),
    ],
)
def test_what_does_not_belong_in_a_sitemap_is_named(make: Make, reply: Reply, why: str) -> None:
    site = make()
    site.there("/a")
    site.web.pages["/a"] = reply

    site.look()
    assert why in site.broken()["/a"].why


@pytest.mark.parametrize(
    "reply",
    [
        page(), page(head='<link rel=canonical href="a">'),
        page(head="<meta name=robots content=all>"),
        Reply(b"x", 200, HTML | {"X-Robots-Tag": "otherbot: noindex, max-snippet: 5"}),
        Reply(b"", 200, HTML), Reply(b"\xff\xfe\x00<", 200, HTML),
        Reply(b"%PDF", 200, {"Content-Type": "application/pdf"}),
        Reply(b"<p>" + b"x" * 3_000_000, 200, HTML),
    ],
)  # fmt: skip
def test_what_belongs_there_is_good(make: Make, reply: Reply) -> None:
    site = make()
    site.there("/a")
    site.web.pages["/a"] = reply

    site.look()
    assert (site.grade("/a"), site.broken()) == (Grade.GOOD, {})


def test_a_page_in_another_language_than_it_is_listed_for_is_worth_a_warning(make: Make) -> None:
    site = make()
    site.web.pages |= {"/de": page(lang="fr"), "/en": page(lang="en-GB")}
    site.rig.do(
        {"type": "upsert", "loc": site.loc("/de"), "group": "g", "lang": "de"},
        {"type": "upsert", "loc": site.loc("/en"), "group": "g", "lang": "en"},
    )

    site.look(3)
    assert site.broken().keys() == {"/de"}
    assert site.grade("/de") is Grade.ODD


def test_what_was_published_is_looked_at_before_the_round_goes_on(make: Make) -> None:
    site = make()
    site.there(*(f"/{n}" for n in range(20)))
    site.look(3)

    site.there("/new")
    site.there("/0", lastmod="2026-01-01")
    assert site.look(2) == ["/new", "/0"]
    assert site.look()[0] not in {"/new", "/0"}


def test_no_more_requests_than_the_budget_of_the_day(make: Make) -> None:
    site = make(pages={"daily": 3})
    site.look()
    site.there(*(f"/{n}" for n in range(10)))

    assert len(site.look(10)) == 3
    assert len(site.look(5)) == 0
    site.store.change(day=1)
    assert len(site.look(10)) == 3


def test_a_large_site_is_sampled_over_all_its_files_and_every_page_has_its_turn(
    make: Make,
) -> None:
    site = make(pages={"daily": 20}, shard_urls=20)
    site.there(*(f"/{n}" for n in range(100)))

    seen = list[str]()
    for day in range(1, 40):
        site.store.change(day=day)
        site.round()
        found = site.look(25)
        assert len(found) <= 20
        seen += found
        if len(set(seen)) == 100:
            break
    assert set(seen) == {f"/{n}" for n in range(100)}
    assert day <= 8


def test_robots_txt_is_obeyed_and_fetched_once_for_all_workers(make: Make) -> None:
    site = make()
    text = b"User-agent: sitemapd\nDisallow: /private\nCrawl-delay: 7\n"
    site.web.robots = Reply(text, 200, {"Content-Type": "text/plain"})
    site.there("/private/a", "/open")

    assert site.look(4) == ["/open"]
    other = SiteLooks(site.client, site.rig.name, site.rig.site, "w2")
    site.round()
    site.rested()
    other.look()
    assert site.web.asked.count("/robots.txt") == 1
    (key,) = site.client.keys("{_sitemapd}:looking:*")
    assert 5_000 < site.client.pttl(key) <= 7_000
    assert "sitemapd" in "".join(site.web.agents)


def test_no_page_is_fetched_while_robots_txt_cannot_be(make: Make) -> None:
    site = make()
    site.there("/a")
    site.web.robots = Reply(b"", 503)

    with pytest.raises(HostSilentError, match=r"robots\.txt answers 503"):
        site.look()
    assert site.web.visits == []
    site.web.robots = None
    assert site.look() == ["/a"]


@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_asks_to_wait_rests_so_long_for_all_workers(make: Make, status: int) -> None:
    site = make()
    site.there("/a")
    site.web.pages["/a"] = Reply(b"", status, {"Retry-After": "900"})

    assert site.look() == ["/a"]
    (key,) = site.client.keys("{_sitemapd}:looking:*")
    assert 800_000 < site.client.pttl(key) <= 900_000
    SiteLooks(site.client, site.rig.name, site.rig.site, "w2").look()
    assert site.web.visits == ["/a"]
    assert (site.grade("/a"), site.broken()) == (None, {})
    site.web.pages["/a"] = page()
    site.client.zadd("{demo}:looks:again", {site.loc("/a"): 1})
    site.look()
    assert site.grade("/a") is Grade.GOOD


def test_a_page_that_asks_to_wait_holds_back_no_other_for_ever(make: Make) -> None:
    site = make()
    site.there("/a", "/b", "/c")
    site.web.pages |= dict.fromkeys(("/a", "/b", "/c"), Reply(b"", 503))

    site.look()
    with pytest.raises(HostSilentError, match="answers 503, 2 times in a row"):
        site.look()
    (key,) = site.client.keys("{_sitemapd}:looking:*")
    assert 60_000 < site.client.pttl(key) <= 120_000
    left = site.look(0) or {"/a", "/b", "/c"} - {*site.web.visits}
    site.web.pages |= dict.fromkeys(left, page())
    assert {*site.look()} == {*left}
    assert site.store.state().silent == 0


def test_two_workers_keep_the_interval_together(make: Make) -> None:
    site = make(pages={"interval": 0.3})
    site.there("/a", "/b", "/c", "/d")
    looks = [SiteLooks(site.client, site.rig.name, site.rig.site, f"w{n}") for n in range(3)]

    while len(site.web.visits) < 4:
        for each in looks:
            each.look()
    at = site.web.at[1:]  # without robots.txt
    gaps = [later - before for before, later in itertools.pairwise(at)]
    assert min(gaps) > 0.25


def test_a_host_that_does_not_answer_fails_the_loop(make: Make) -> None:
    site = make()
    site.there("/a", "/b")
    site.look()

    def silent(_: object) -> Reply:
        raise ConnectionResetError

    site.web.pages = {"/a": silent, "/b": silent}
    site.round()
    with pytest.raises(HostSilentError, match="answers no request"):
        site.look(4)
    site.web.pages = {"/a": page(), "/b": page()}
    site.look(4, again=True)
    assert site.broken() == {}
    assert site.store.state().silent == 0


def test_a_deleted_page_is_forgotten(make: Make) -> None:
    site = make(pages={"confirm_minutes": 60})
    site.there("/a", "/b")
    site.web.pages["/a"] = GONE
    site.look(3)
    site.rig.do({"type": "delete", "loc": site.loc("/a")})
    site.client.zadd(site.store._keys.again, {site.loc("/a"): 1})

    assert "/a" not in site.look(2)
    assert site.broken() == {}
    assert site.record("/a") is None


def test_records_are_bounded_and_the_oldest_leave(make: Make) -> None:
    site = make()
    store = LookStore(site.client, site.rig.name, 1)
    site.there(*(f"/{n}" for n in range(30)))
    site.looks._store._most = store._most = 1

    site.look(31)
    keys = site.client.keys("{demo}:looks:page:*")
    assert all(site.client.hlen(key) == 1 for key in keys)


def test_a_sample_with_many_broken_pages_is_an_alarm_until_they_are_good(make: Make) -> None:
    site = make()
    settings = site.rig.site.pages
    assert settings is not None
    site.there(*(f"/{n}" for n in range(10)))
    site.web.pages["/3"] = site.web.pages["/4"] = GONE

    site.look(16)
    summary = site.summary
    assert summary is not None
    assert (summary.looked, summary.failed, summary.broken, summary.complete) == (10, 2, 2, True)
    assert summary.alarms(settings) == ["20 % of the pages in a sample are broken: 2 of 10."]

    site.web.pages["/3"] = site.web.pages["/4"] = page()
    site.look(5, again=True)
    summary = site.summary
    assert summary is not None
    assert summary.alarms(settings) == []


def test_a_tenth_fewer_pages_are_an_alarm(make: Make) -> None:
    site = make()
    settings = site.rig.site.pages
    assert settings is not None
    site.there(*(f"/{n}" for n in range(10)))
    site.look(11)
    site.rig.do(*({"type": "delete", "loc": site.loc(f"/{n}")} for n in range(2)))
    site.web.pages["/5"] = GONE
    site.there("/5", lastmod="2026-01-01")
    site.look(2)

    summary = site.summary
    assert summary is not None
    assert "8 pages are listed, 20 % fewer than the 10 of the rounds before." in summary.alarms(
        settings
    )
