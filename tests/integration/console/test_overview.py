"""What the overview of the console draws and points out, and at what cost."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from lxml import html

from shared.store.counting.counters import Counters, together
from shared.store.operations.queues import EVENTS, INTAKE, Queues
from shared.store.operations.worker_registry import WorkerRegistry
from tests.integration.conftest import RedisServer
from tests.integration.console.browsing import Browser, Configure
from tests.integration.rig import Rig
from tests.integration.worked import beat
from webhook.console.presentation import template_filters

UNIT = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "a")


def overview(browser: Browser) -> Any:
    answer = browser.get("/admin/?site=demo")
    assert answer.status_code == 200
    return html.fromstring(answer.text).get_element_by_id("site-demo")


def tile(card: Any, name: str) -> str:
    (found,) = card.xpath(f".//dl[contains(@class, 'tiles')]/div[dt='{name}']/dd")
    return " ".join(found.text_content().split())


def concerns(card: Any) -> str:
    return " ".join(each.text_content() for each in card.find_class("concern"))


def test_the_last_hour_is_drawn_as_it_was_counted(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(5)))
    rig.do({"type": "upsert", "loc": "p/0"})
    card = overview(ann)
    minutes = [each for each in Counters(store, "demo").minutes(60) if each.counts]
    waits = together([each.waits for each in minutes])

    assert waits.files == 1
    said = card.find_class("waited")[0].text_content()
    for name, share in UNIT.items():
        value = waits.percentile(share)
        assert value is not None
        assert f"{name} {template_filters.ms(value)}" in said
    (table,) = card.xpath(".//details[@id='chart-latency-table']//tbody")
    assert len(table) == 1
    (events,) = card.xpath(".//details[@id='chart-events-table']//tbody")
    rows = [[int(cell.text) for cell in row[1:]] for row in events]
    assert len(rows) == 60
    assert [sum(column) for column in zip(*rows, strict=True)] == [6, 5]


def test_a_site_without_events_has_no_chart(ann: Browser) -> None:
    card = overview(ann)

    assert not card.find_class("chart")
    assert not card.find_class("waited")


def test_what_waits_is_shown_with_the_age_of_the_oldest(ann: Browser, rig: Rig) -> None:
    rig.send({"type": "upsert", "loc": "a"}, {"type": "upsert", "loc": "b"})

    said = tile(overview(ann), "Waiting events")
    assert re.fullmatch(r"2 0 in flight, oldest \d+ s", said)


def test_files_that_list_other_pages_than_the_state_are_pointed_out(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    rig.do({"type": "upsert", "loc": "a"}, {"type": "upsert", "loc": "b"})
    assert tile(overview(ann), "Drift") == "0 state against files"
    assert concerns(overview(ann)) == ""

    store.hincrby("{demo}:counters", "urls", 1)
    assert tile(overview(ann), "Drift") == "+1 state against files"
    assert "The state lists 3 pages, its files 2." in concerns(overview(ann))
    assert "sitemapd verify --site demo" in concerns(overview(ann))

    rig.send({"type": "upsert", "loc": "c"})
    assert "The state lists" not in concerns(overview(ann)), "what waits explains it"


def test_what_is_paused_is_said(ann: Browser, rig: Rig) -> None:
    queues = Queues(rig.client, rig.name)
    queues.pause(EVENTS, "ann")
    queues.pause(INTAKE, "ann")

    assert "Events are paused; the intake is closed." in concerns(overview(ann))

    queues.resume(EVENTS)
    queues.resume(INTAKE)
    assert "paused" not in concerns(overview(ann))


def test_nobody_at_work_is_an_alarm(ann: Browser, store: redis.Redis) -> None:
    assert "No worker is alive." in ann.get("/admin/").text
    WorkerRegistry(store).beat("w1", beat(state="quiet"))
    assert "Every worker is quiet." in ann.get("/admin/").text
    WorkerRegistry(store).beat("w2", beat())

    page = ann.get("/admin/").text
    assert "worker is quiet" not in page
    assert "w1 quiet" in page
    assert "w2 working" in page


def row(browser: Browser, name: str = "demo", path: str = "/admin/") -> dict[str, str]:
    """What the table of all sites says of one, by column."""
    (table,) = html.fromstring(browser.get(path).text).xpath("//section[@id='fleet']//table")
    heads = [" ".join(head.text_content().split()) for head in table.xpath("./thead/tr/th")]
    for each in table.xpath("./tbody/tr"):
        cells = [" ".join(cell.text_content().split()) for cell in each]
        if cells[0].startswith(f"{name} "):
            return dict(zip(heads, cells, strict=True))
    raise AssertionError(f"no row of {name}")


def sites(browser: Browser, path: str = "/admin/") -> list[str]:
    tree = html.fromstring(browser.get(path).text)
    return [str(each) for each in tree.xpath("//section[@id='fleet']//tbody/tr/th/a/text()")]


def test_each_site_has_a_row_of_what_it_does(ann: Browser, rig: Rig, store: redis.Redis) -> None:
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(5)))
    store.hset("{demo}:held", "pages/1", f"{int(time.time())} 10 100")
    store.xadd("{demo}:dead", {"e": "{}"})
    minute = int(time.time() // 60)
    for back in (0, 1, 2):
        store.hincrby(f"{{demo}}:pulse:{minute - back}", "accepted", 10)
        store.expire(f"{{demo}}:pulse:{minute - back}", 600)
    store.hincrby(f"{{demo}}:pulse:{minute}", "refused:stale", 3)
    store.xadd("{demo}:refused", {"refused": "{}"})
    rig.send({"type": "upsert", "loc": "waits"})
    found = row(ann)

    assert found["State"] == "Needs you"
    assert float(found["Events a minute"]) >= 4
    assert re.fullmatch(r"[\d.]+ m?s, [\d.]+ m?s", found["Lag p50, p95"])
    assert [found[name] for name in ("Waiting", "Refused", "Failed", "Held")] == [
        "1",
        "3",
        "1",
        "1",
    ]
    assert "ago" in found["Last publish"] or found["Last publish"] == "now"
    assert "6 events within a day" in ann.get("/admin/").text
    assert row(ann, "other")["Last publish"] == "never"


def test_the_worst_site_stands_first_and_its_concerns_above_all(
    ann: Browser, store: redis.Redis
) -> None:
    assert sites(ann) == ["demo", "other"]
    store.xadd("{other}:dead", {"e": "{}"})
    assert sites(ann) == ["other", "demo"]
    store.hset("{demo}:paused", "events", "1 ann")

    tree = html.fromstring(ann.get("/admin/").text)
    said = [
        " ".join(each.text_content().split()) for each in tree.xpath("//ul[@class='concerns']/li")
    ]
    assert said[0].startswith("other 1 event failed five times")
    assert said[1].startswith("demo Events are paused.")
    assert tree.xpath("//ul[@class='concerns']//a[@class='button']/@href") == [
        "/admin/failed?site=other", "/admin/queues?site=demo",
    ]  # fmt: skip
    assert sites(ann) == ["other", "demo"]


def test_sites_are_searched_by_name_and_address(ann: Browser, store: redis.Redis) -> None:
    assert sites(ann, "/admin/?q=OTH") == ["other"]
    assert sites(ann, "/admin/?q=www.example") == ["demo"]
    assert sites(ann, "/admin/?only=attention") == []
    assert "No site matches." in ann.get("/admin/?q=nothing").text
    store.xadd("{other}:dead", {"e": "{}"})
    assert sites(ann, "/admin/?only=attention") == ["other"]


def test_the_only_site_is_shown_at_once(configure: Configure) -> None:
    settings = configure()
    one = settings.model_copy(update={"sites": {"demo": settings.sites["demo"]}})
    browser = Browser(one)
    browser.login("ann")
    tree = html.fromstring(browser.get("/admin/").text)

    assert tree.get_element_by_id("site-demo") is not None
    assert not tree.xpath("//section[@id='fleet']")
    assert "All sites" not in tree.text_content()


@pytest.mark.parametrize(("chosen", "points"), [("1h", 60), ("24h", 96), ("7d", 168)])
def test_charts_have_three_ranges(chosen: str, points: int, ann: Browser, rig: Rig) -> None:
    rig.do({"type": "upsert", "loc": "a"})
    tree = html.fromstring(ann.get(f"/admin/?site=demo&range={chosen}").text)
    (events,) = tree.xpath(".//details[@id='chart-events-table']//tbody")

    assert len(events) == points
    assert sum(int(each[1].text) for each in events) == 1
    assert tree.xpath("//nav[@class='ranges']/a[@aria-current]/text()") == [chosen]
    assert any("decided 1, changed 1" in each for each in tree.xpath("//rect/title/text()"))


def test_a_site_costs_a_few_round_trips_however_many_sections_it_has(
    configure: Configure, store: redis.Redis, redis_server: RedisServer, tmp_path: Path
) -> None:
    trips = 0

    class Counting(redis.UnixDomainSocketConnection):
        def send_packed_command(self, *args: Any, **options: Any) -> Any:
            nonlocal trips
            trips += 1
            return super().send_packed_command(*args, **options)

    path = urlsplit(redis_server.url).path
    pool = redis.ConnectionPool(connection_class=Counting, path=path)
    browser = Browser(configure(), client=redis.Redis(connection_pool=pool))
    browser.login("ann")
    rig = Rig(store, tmp_path / "a", sections={f"s{n}": {} for n in range(20)})

    def cost() -> int:
        nonlocal trips
        for _ in range(3):  # each connection is greeted once
            overview(browser)
        trips = 0
        overview(browser)
        return trips

    rig.do({"type": "upsert", "loc": "a", "section": "s0"})
    before = cost()
    rig.do(*({"type": "upsert", "loc": f"p/{n}", "section": f"s{n}"} for n in range(20)))

    assert cost() == before
    assert before <= 2 * 12 + 6, "two sites, and what all pages cost"
