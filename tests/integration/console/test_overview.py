"""What the overview of the console draws and points out, and at what cost."""

from __future__ import annotations

import re
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
    answer = browser.get("/admin/")
    assert answer.status_code == 200
    return html.fromstring(answer.text).get_element_by_id("site-demo")


def tile(card: Any, name: str) -> str:
    (found,) = card.xpath(f".//dl[@class='tiles']/div[dt='{name}']/dd")
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
    (table,) = card.xpath(".//details[@id='chart-latency-demo-table']//tbody")
    assert len(table) == 1
    (events,) = card.xpath(".//details[@id='chart-events-demo-table']//tbody")
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
        overview(browser)  # a connection is greeted once
        trips = 0
        overview(browser)
        return trips

    rig.do({"type": "upsert", "loc": "a", "section": "s0"})
    before = cost()
    rig.do(*({"type": "upsert", "loc": f"p/{n}", "section": f"s{n}"} for n in range(20)))

    assert cost() == before
    assert before <= 2 * 12 + 6, "two sites, and what all pages cost"
