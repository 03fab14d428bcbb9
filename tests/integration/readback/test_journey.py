"""The chain of one page from event to index, in one line and in the inspector of the console."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import redis

from shared.admin import read_back
from shared.admin.page_journey import journey_of
from shared.admin.site_status import Inspector
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.sitemap import w3c_dates
from shared.store.operations import crawl_report
from shared.store.operations.crawl_report import FetchedPage
from tests.integration.clocked import Clock, Clocked
from tests.integration.conftest import RedisServer
from tests.integration.console.browsing import HERE, TOKENS, Browser
from tests.integration.readback.reading import ReadingRig
from tests.integration.rig import BASE, Rig
from tests.integration.webmasters import Bing, bing_page

A = BASE + "a"


def of_page(rig: Rig, loc: str) -> list[str]:
    """Name of each step of the page."""
    found = Inspector(rig.client, rig.name, rig.site).entry(loc)
    return [step.step for step in journey_of(rig.client, rig.name, rig.site, found).steps]


def browsing(server: RedisServer, name: str, site: Site) -> Browser:
    """The console of the site, logged in."""
    users = {"ann": {"token": TOKENS["ann"], "role": "operator"}}
    settings = Settings(
        redis_url=server.url, sites={name: site},
        console={"origin": HERE, "users": users},  # type: ignore[arg-type]
    )  # fmt: skip
    browser = Browser(settings)
    browser.login("ann")
    return browser


def steps(site: ReadingRig) -> list[tuple[str, str]]:
    """Name and grade of each step of the page A."""
    rig = site.rig
    found = Inspector(rig.client, rig.name, rig.site).entry(A)
    return [
        (step.step, step.grade) for step in journey_of(rig.client, rig.name, rig.site, found)[0]
    ]


def fetched(site: ReadingRig, **minutes: int) -> dict[str, int]:
    """Fetches of A so many minutes after its publish, as `sitemapd crawl` stores them."""
    (chain,) = site.reading.chains.read([A], [])
    published = chain.page.published_ms
    found = {name: published + after * 60_000 for name, after in minutes.items()}
    pages = [FetchedPage(A, published, found)]
    crawl_report.save_pages(site.rig.client, site.rig.name, pages)
    return found


def test_a_journey_goes_from_the_event_by_the_crawlers_to_the_index(
    site: ReadingRig, bing: Bing
) -> None:
    site.publish("a")
    unasked = steps(site)
    site.later(31)
    site.reading.read("bing")
    unknown = steps(site)
    fetched(site, Bingbot=4, Googlebot=9)
    bing.pages[A] = bing_page(site.now, site.now, 200)
    site.later(61)
    site.reading.read("bing")

    assert [name for name, _ in unasked] == [
        "accepted", "decided", "applied", "published", "not asked",
    ]  # fmt: skip
    assert unknown[-1] == ("not known to Bing", "warn")
    assert steps(site)[-3:] == [("fetched", "good"), ("fetched", "good"), ("known to Bing", "good")]


def test_a_page_that_came_or_went_by_time_is_shown_with_the_event_that_said_so(
    store: redis.Redis, tmp_path: Path, redis_server: RedisServer
) -> None:
    now = int(time.time())
    rig = Clocked(Clock(now * 1000), store, tmp_path / "public")
    at = w3c_dates.from_epoch_s(now + 60)
    rig.do(
        {"type": "upsert", "loc": "a", "publish_at": at},
        {"type": "upsert", "loc": "b", "expires": at},
    )
    waiting = of_page(rig, A)
    rig.clock.ms += 61_000
    rig.pump().expire()
    rig.settle()

    assert waiting == ["accepted", "decided"]
    assert of_page(rig, A) == ["accepted", "decided", "decided", "applied", "published"]
    assert of_page(rig, BASE + "b") == ["decided", "applied", "published"]
    for page in (A, BASE + "b"):
        text = browsing(redis_server, rig.name, rig.site).get(f"/admin/inspector?loc={page}")
        assert "<td>no event</td>" in text.get_data(as_text=True)


def test_a_page_is_one_line_with_each_date_once(site: ReadingRig, bing: Bing) -> None:
    site.publish("a")
    bing.pages[A] = bing_page(site.now, site.now, 200)
    site.later(31)
    site.reading.read("bing")
    fetches = fetched(site, Bingbot=4)
    page = site.known().page(A)
    assert page is not None
    line = read_back.line_of(page)

    clock = w3c_dates.from_epoch_s(fetches["Bingbot"] // 1000)[11:19]
    assert re.fullmatch(
        rf"{A}  changed \S+ \S+, published (\S+ )?\S+, fetched by Bingbot (\S+ )?{clock},"
        r" known to Bing as of (\S+ )?[0-9:]{8}",
        line,
    )


def test_a_fetch_of_an_earlier_version_is_no_step(site: ReadingRig) -> None:
    site.publish("a", lastmod="2026-01-01")
    (chain,) = site.reading.chains.read([A], [])
    before = FetchedPage(A, chain.page.published_ms - 10, {"Bingbot": chain.page.published_ms - 5})
    crawl_report.save_pages(site.rig.client, site.rig.name, [before])

    assert "fetched" not in [name for name, _ in steps(site)]


def test_fetches_of_several_logs_are_joined_and_the_first_counts(site: ReadingRig) -> None:
    client, name = site.rig.client, site.rig.name
    crawl_report.save_pages(client, name, [FetchedPage(A, 10, {"Bingbot": 20, "Googlebot": 50})])
    crawl_report.save_pages(client, name, [FetchedPage(A, 10, {"Googlebot": 40})])
    crawl_report.save_pages(client, name, [FetchedPage(A, 5, {"Googlebot": 6})])

    assert crawl_report.first_fetches(client, name, [A]) == {A: {"Bingbot": 20, "Googlebot": 40}}
    crawl_report.save_pages(client, name, [FetchedPage(A, 60, {"Bingbot": 70})])
    assert crawl_report.first_fetches(client, name, [A]) == {A: {"Bingbot": 70}}


def test_the_fetches_of_so_many_pages_are_kept_as_are_published_last(
    site: ReadingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_report, "MOST_PAGES", 2)
    pages = [FetchedPage(f"{BASE}{n}", n, {"Bingbot": n + 1}) for n in (1, 3, 2)]
    crawl_report.save_pages(site.rig.client, site.rig.name, pages)

    locs = [page.loc for page in pages]
    found = crawl_report.first_fetches(site.rig.client, site.rig.name, locs)
    assert {*found} == {f"{BASE}2", f"{BASE}3"}


def test_the_inspector_shows_the_whole_chain(
    site: ReadingRig, bing: Bing, redis_server: RedisServer
) -> None:
    site.publish("a")
    bing.pages[A] = bing_page(site.now, site.now, 200)
    site.later(31)
    site.reading.read("bing")
    fetched(site, Bingbot=4)
    browser = browsing(redis_server, site.rig.name, site.rig.site)
    text = browser.get(f"/admin/inspector?loc={A}").get_data(as_text=True)

    assert re.findall(r'<li class="good"><b>([^<]*)</b>', text) == [
        "Accepted", "Decided", "Applied", "Published", "Fetched", "Known to Bing",
    ]  # fmt: skip
    assert "sitemapd readback" in text
