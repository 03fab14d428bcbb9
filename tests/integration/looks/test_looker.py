"""A worker looks at the pages of the sites that want it, and says when it cannot."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.store.operations.loop_health import LoopHealth
from tests.integration.conftest import RedisServer, Wait
from tests.integration.looks.visited import Visited, Website
from tests.unit.worker.sources.cms import Reply
from worker.looks.looker import Looker
from worker.loops.watchdog import Watchdog
from worker.runtime import Runtime


@pytest.fixture
def site(store: redis.Redis, tmp_path: Path, web: tuple[Website, str]) -> Visited:
    site = Visited(store, tmp_path / "public", *web)
    site.there("/a", "/b", "/c")
    return site


@pytest.fixture
def looker(site: Visited) -> Iterator[Looker]:
    looker = Looker(site.rig.settings, site.client, "w1")
    yield looker
    looker.stop()


def test_a_worker_looks_at_the_pages_by_itself(
    site: Visited, redis_server: RedisServer, until: Wait
) -> None:
    settings = site.rig.settings.model_copy(update={"redis_url": redis_server.url})
    runtime = Runtime(settings, "w1")
    runtime.start(2)
    try:
        until(lambda: len(site.web.visits) == 3, "all pages are looked at")
        site.web.pages["/new"] = site.web.pages["/a"]
        site.rig.send({"type": "upsert", "loc": site.loc("/new")})
        until(lambda: "/new" in site.web.visits, "what was published is looked at")
    finally:
        runtime.stop()
        runtime.end()


def test_a_site_without_the_table_costs_no_thread_and_no_request(
    store: redis.Redis, site: Visited
) -> None:
    plain = site.rig.settings.sites["demo"].model_copy(update={"pages": None})
    looker = Looker(site.rig.settings.model_copy(update={"sites": {"demo": plain}}), store, "w1")
    looker.start()

    assert not looker.loop.started
    looker.prepare(site.rig.settings)()
    assert looker.loop.started
    looker.stop()


def test_a_host_that_cannot_be_looked_at_is_red_until_a_look_succeeds(
    site: Visited, looker: Looker, until: Wait
) -> None:
    site.web.robots = Reply(b"", 500)
    watchdog = Watchdog(site.client, "w1", [looker.loop])
    looker.start()

    def red() -> list[str]:
        watchdog.look()
        reports = LoopHealth(site.client).reports().values()
        return [told.reason for report in reports for told in report.troubles]

    site.client.zadd("{_sitemapd}:workers", {"w1": 4e12})
    until(red, "the loop fails")
    assert "robots.txt answers 500" in red()[0]
    looker.look()
    assert red(), "while the host rests nothing is forgotten"


def test_a_worker_that_stops_aborts_its_look(site: Visited, looker: Looker, until: Wait) -> None:
    asked, release = threading.Event(), threading.Event()

    def slow(_: Any) -> Reply:
        asked.set()
        release.wait(20)
        return Reply(b"")

    site.web.pages = dict.fromkeys(("/a", "/b", "/c"), slow)
    looker.start()
    until(asked.is_set, "a look is under way")
    try:
        looker.stop()
        looker.loop.join(15)
        until(
            lambda: not [t for t in threading.enumerate() if t.name.startswith("looks")], "end", 15
        )
    finally:
        release.set()
    assert site.store.state().looked == 0
