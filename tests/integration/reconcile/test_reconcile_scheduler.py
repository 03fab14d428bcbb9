"""Workers answer resyncs from the configured source, in no wake-up's way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.config.settings import Settings
from tests.integration.conftest import RedisServer, Wait
from tests.integration.logs import captured
from tests.integration.rig import BASE, Rig, settings
from tests.unit.worker.sources.cms import Asked, Ghost, Reply, served
from worker.reconcile import reconcile_scheduler
from worker.reconcile.reconcile_scheduler import ReconcileScheduler
from worker.runtime import Runtime

KEY = "canary-key"
Configured = Callable[..., Settings]


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    (tmp_path / "public").mkdir()
    return Rig(store, tmp_path / "public")


@pytest.fixture
def ghost() -> Ghost:
    ghost = Ghost(KEY)
    ghost.rows["posts"] = [{"id": "1", "url": BASE + "a"}, {"id": "2", "url": BASE + "b"}]
    return ghost


@pytest.fixture
def source(ghost: Ghost) -> Iterator[str]:
    with served(ghost) as url:
        yield f"ghost:{url}/"


@pytest.fixture
def configured(redis_server: RedisServer, tmp_path: Path) -> Configured:
    def make(**options: Any) -> Settings:
        sites = settings(tmp_path / "public", **options).sites
        return Settings(redis_url=redis_server.url, sites=sites)

    return make


def answerer(rig: Rig, config: Settings) -> ReconcileScheduler:
    return ReconcileScheduler(config, rig.client, "w1", lambda _: rig.settle())


def listed(rig: Rig) -> set[str]:
    return {loc.removeprefix(BASE) for loc in rig.listed()}


def resync(rig: Rig, **members: Any) -> None:
    rig.do({"type": "resync", **members})


def test_a_resync_is_answered_by_a_running_worker(
    rig: Rig, source: str, configured: Configured, until: Wait
) -> None:
    """From the event to the files, without a message and without a schedule."""
    plant = Runtime(configured(source=source, source_key=KEY), "w1")
    plant.start()
    try:
        rig.send({"type": "upsert", "loc": "old"}, {"type": "upsert", "loc": "a"})
        rig.send({"type": "resync"})
        until(lambda: rig.quiet() and listed(rig) == {"a", "b"}, "the resync is answered")
        until(lambda: not rig.resyncs.open(), "its scope is closed")
    finally:
        plant.stop()


def test_events_are_published_while_a_source_does_not_answer(
    rig: Rig, ghost: Ghost, source: str, configured: Configured, until: Wait
) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(_: Asked) -> Reply | None:
        asked.set()
        go_on.wait(30)
        return None

    ghost.instead = slow
    plant = Runtime(configured(source=source, source_key=KEY), "w1")
    plant.start()
    try:
        rig.send({"type": "resync"})
        until(asked.is_set, "the source is read")
        rig.send({"type": "upsert", "loc": "now"})
        until(lambda: listed(rig) == {"now"}, "the event is published")
        go_on.set()
        until(lambda: not rig.resyncs.open() and rig.quiet(), "the resync is answered")
    finally:
        go_on.set()
        plant.stop()


def test_several_scopes_are_answered_by_one_reading(
    rig: Rig, ghost: Ghost, source: str, configured: Configured
) -> None:
    readings = []
    ghost.instead = lambda asked: readings.append(asked.path)
    resync(rig, prefix=BASE + "x/")
    resync(rig, prefix=BASE + "y/")

    answerer(rig, configured(source=source, source_key=KEY)).look()

    assert readings.count("/ghost/api/content/posts/") == 1
    assert rig.resyncs.open() == {}


def test_a_source_is_left_alone_for_a_while_after_each_run(
    rig: Rig, ghost: Ghost, source: str, configured: Configured
) -> None:
    readings = []
    ghost.instead = lambda asked: readings.append(asked.path)
    worker = answerer(rig, configured(source=source, source_key=KEY))
    for _ in range(3):
        resync(rig)
        worker.look()

    assert readings.count("/ghost/api/content/posts/") == 1
    assert len(rig.resyncs.open()) == 1


def test_a_source_that_fails_leaves_the_scope_open_and_its_key_unsaid(
    rig: Rig, source: str, configured: Configured
) -> None:
    resync(rig)

    with captured(reconcile_scheduler) as logs:
        answerer(rig, configured(source=source, source_key="another-canary")).look()

    assert len(rig.resyncs.open()) == 1
    assert [log["log_level"] for log in logs] == ["info", "error"]
    assert "401" in logs[1]["reason"]
    assert "canary" not in str(logs)


def test_a_source_that_is_nearly_empty_is_refused_with_an_alarm(
    rig: Rig, source: str, configured: Configured
) -> None:
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(20)))
    resync(rig)

    with captured(reconcile_scheduler) as logs:
        answerer(rig, configured(source=source, source_key=KEY)).look()

    assert len(listed(rig)) == 20
    assert "--yes" in logs[-1]["reason"]
    assert len(rig.resyncs.open()) == 1


def test_a_site_without_a_source_gives_one_alarm_an_hour(rig: Rig, configured: Configured) -> None:
    resync(rig, prefix=BASE + "blog/")

    with captured(reconcile_scheduler) as logs:
        for _ in range(3):
            answerer(rig, configured()).look()

    (alarm,) = logs
    assert alarm["log_level"] == "error"
    assert alarm["scopes"] == [f"prefix {BASE}blog/"]
    assert alarm["run"] == "sitemapd reconcile --against SOURCE"
    assert 0 < rig.client.ttl(rig.keys.resync_alarm) <= 3600


@pytest.mark.parametrize(("hours", "runs"), [(0, 0), (1, 1), (3, 0)])
def test_a_reconcile_that_is_due_by_the_clock_asks_nobody(
    rig: Rig, source: str, configured: Configured, hours: int, runs: int
) -> None:
    rig.resyncs.completed(rig.resyncs.begin_ms() - 2 * 3_600_000)

    answerer(rig, configured(source=source, source_key=KEY, reconcile_hours=hours)).look()

    assert listed(rig) == ({"a", "b"} if runs else set())


def test_a_worker_that_is_told_so_leaves_resyncs_to_others(
    rig: Rig, source: str, configured: Configured, until: Wait
) -> None:
    told: list[str] = []
    config = configured(source=source, source_key=KEY)
    plant = Runtime(config, "w1", reconciles=False, on_resync=told.append)
    plant.start()
    try:
        rig.send({"type": "resync"})
        until(lambda: told, "the resync is told of")
    finally:
        plant.stop()

    assert told == ["demo"]
    assert len(rig.resyncs.open()) == 1
