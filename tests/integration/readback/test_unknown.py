"""Published but unknown: as a list, a concern, an alert, a metric, and on the page Index status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from shared.admin.alert_findings import findings
from shared.admin.attention import concerns
from shared.admin.site_signs import SignReader, SiteSigns
from shared.alerts import conditions
from shared.config.settings import Settings
from shared.metrics.collector import Collector
from tests.integration.conftest import RedisServer
from tests.integration.console.browsing import HERE, TOKENS, Browser
from tests.integration.readback.reading import ReadingRig, bing_table
from tests.integration.rig import BASE
from tests.integration.webmasters import Bing, bing_feed, bing_page

PAGES = ("a", "b", "c")


@pytest.fixture
def tables(bing: Bing) -> dict[str, Any]:
    """A page is late at once, two of them are a concern."""
    options = {"unknown_hours": 0, "unknown_pages": 2, "first_minutes": 0}
    return options | {"bing": bing_table(bing.url)}


@pytest.fixture
def site(site: ReadingRig, bing: Bing) -> ReadingRig:
    """Pages of which Bing knows the first."""
    site.publish(*PAGES, section="pages")
    bing.pages[BASE + "a"] = bing_page(site.now, site.now, 200)
    return site


def signs(site: ReadingRig) -> SiteSigns:
    return SignReader(site.rig.client, {site.rig.name: site.rig.site}).read()[0]


def metrics(site: ReadingRig) -> dict[str, float]:
    collector = Collector(site.rig.client, {site.rig.name: site.rig.site})
    return {
        sample.labels[2]: sample.value
        for sample in collector.samples([site.rig.name])
        if sample.metric.name == "sitemapd_readback_pages"
    }


def alerts(site: ReadingRig, limit: float = 1) -> list[str]:
    found = findings(signs(site), {conditions.UNKNOWN: limit})
    return [each.todo for _, each in found]


def test_pages_that_were_never_asked_about_are_not_unknown(site: ReadingRig) -> None:
    assert metrics(site) == {"known": 0, "unknown": 0, "late": 0, "unasked": 3}
    assert not signs(site).late
    assert alerts(site) == []


def test_unknown_pages_are_a_list_a_concern_an_alert_and_a_metric_until_they_are_known(
    site: ReadingRig, bing: Bing
) -> None:
    site.reading.read("bing")
    late = site.known().late("bing", site.now, 10)
    told = [each for each in concerns(signs(site)) if each.kind == "unknown"]
    found, many = alerts(site), alerts(site, limit=3)
    counted = metrics(site)
    bing.pages |= {BASE + loc: bing_page(site.now, site.now, 200) for loc in PAGES}
    site.later(61)
    site.reading.read("bing")

    assert {page.chain.loc for page in late} == {BASE + "b", BASE + "c"}
    assert [(each.grade, each.page) for each in told] == [("warn", "index_status")]
    assert "2 pages" in told[0].said
    assert found == ["sitemapd readback --unknown --site demo"]
    assert many == []
    assert counted == {"known": 1, "unknown": 2, "late": 2, "unasked": 0}
    assert metrics(site) == {"known": 3, "unknown": 0, "late": 0, "unasked": 0}
    assert alerts(site) == []


def test_a_page_that_is_deleted_is_asked_about_no_more(site: ReadingRig) -> None:
    site.reading.read("bing")
    site.rig.do({"type": "delete", "loc": "b"}, {"type": "delete", "loc": "c"})
    site.follow()

    assert metrics(site) == {"known": 1, "unknown": 0, "late": 0, "unasked": 0}


def test_so_many_pages_are_followed_as_were_published_last(
    store: redis.Redis, tmp_path: Path, bing: Bing
) -> None:
    tables = {"pages": 10, "first_minutes": 0, "bing": bing_table(bing.url)}
    site = ReadingRig(store, tmp_path / "other", tables)
    for n in range(3):
        site.publish(*(f"{n}-{m}" for m in range(6)))

    newest = [chain.loc for chain in site.reading.chains.newest([], 20)]
    assert len(newest) == site.reading.chains.count() == 10
    assert not any("/0-" in loc for loc in newest)


def test_a_bulk_change_is_followed_by_a_sample(
    store: redis.Redis, tmp_path: Path, bing: Bing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.readback.publish_follower.SAMPLE", 20)
    site = ReadingRig(store, tmp_path / "other", {"bing": bing_table(bing.url)})
    monkeypatch.setattr("worker.publishing.shard_file.MOST_LINES", 50)
    site.publish(*(f"page-{n:04}" for n in range(200)))

    followed = {chain.loc for chain in site.reading.chains.all([])}
    assert len(followed) in range(20, 60)  # 20 of each of some files
    assert followed < site.rig.listed().keys()


def test_the_console_shows_engines_delays_late_pages_and_sitemaps(
    site: ReadingRig, bing: Bing, redis_server: RedisServer
) -> None:
    bing.feeds = [bing_feed(f"{BASE}sitemap.xml", site.now, 3)]
    site.reading.read("bing")
    site.reading.sum_up()
    users = {"ann": {"token": TOKENS["ann"], "role": "operator"}}
    settings = Settings(
        redis_url=redis_server.url, sites={site.rig.name: site.rig.site},
        console={"origin": HERE, "users": users},  # type: ignore[arg-type]
    )  # fmt: skip
    browser = Browser(settings)
    browser.login("ann")
    text = browser.get("/admin/index-status").get_data(as_text=True)

    assert "Bing: 2 pages" in text
    assert "unknown to Bing" in text
    assert f"{BASE}sitemap.xml" in text
    assert "1 of 3 pages known" in text
    assert "2 pages" in browser.get("/admin/").get_data(as_text=True)
