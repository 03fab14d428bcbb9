"""Workers tell search engines in threads of their own: no publish waits (RELIABILITY F24)."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.config.settings import Settings
from shared.store.notify.notification_queue import NotificationQueue
from tests.integration import rig as rigs
from tests.integration.conftest import RedisServer, Wait, wait_until
from tests.integration.engines import Behaviour, Engine, engine, hang, reply
from tests.integration.notified import NOON, TABLES, here
from tests.integration.rig import BASE, Rig
from worker.http.client import ask
from worker.http.exchange import NOTIFY
from worker.notify.notifier import Notifier
from worker.runtime import Runtime

A = BASE + "a"
Configured = Callable[..., Settings]


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    (tmp_path / "public").mkdir()
    return Rig(store, tmp_path / "public")


@pytest.fixture
def server() -> Iterator[Engine]:
    with engine() as server:
        yield server
    # A plant that stops does not wait for an engine: what that one said would be the next test's.
    wait_until(lambda: not _telling(), "nobody is told any more")


def _telling() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("notify_")]


@pytest.fixture
def configured(redis_server: RedisServer, tmp_path: Path) -> Configured:
    """Settings of one site that tells these engines."""

    def make(**urls: str) -> Settings:
        tables = {name: TABLES[name](url) for name, url in urls.items()}
        if "indexnow" in tables:  # the rig takes what it does not know for a shard
            tables["indexnow"]["key_location"] = f"{BASE}key.txt"
        sites = rigs.settings(tmp_path / "public", **here(tables)).sites
        return Settings(redis_url=redis_server.url, sites=sites)

    return make


def enqueue(rig: Rig, *engines: str) -> None:
    """As the commit of a publish does."""
    NotificationQueue(rig.client, rig.name).enqueue(engines, [A], NOON)


def waiting(rig: Rig, engine: str = "indexnow") -> Any:
    return NotificationQueue(rig.client, rig.name).figures(engine, NOON)["waiting"]


@pytest.mark.parametrize(
    "behaviour",
    [reply(403), reply(429, retry_after="3600"), reply(503), reply(302, location=BASE)],
    ids=["403", "429", "503", "redirects"],
)
def test_f24_what_an_engine_answers_is_nothing_to_a_publish(
    rig: Rig, server: Engine, configured: Configured, until: Wait, behaviour: Behaviour
) -> None:
    server.script = [behaviour]
    plant = Runtime(configured(indexnow=server.url), "w1")
    plant.start()
    try:
        enqueue(rig, "indexnow")
        plant.notify()
        until(server.connected.is_set, "the engine is told")
        rig.send({"type": "upsert", "loc": "a"})
        plant.wake(rig.name)
    finally:
        plant.stop()

    assert rig.quiet()
    assert set(rig.listed()) == {A}


def test_f24_a_publish_is_over_while_an_engine_still_hangs(
    rig: Rig, server: Engine, configured: Configured
) -> None:
    """On a machine so busy that it took longer than the engine gets, it is tried once more."""
    server.script, notices = [hang], NotificationQueue(rig.client, rig.name)
    plant = Runtime(configured(indexnow=server.url), "w1")
    plant.start()
    try:
        for n in range(5):
            notices.replay(["indexnow"], NOON)
            enqueue(rig, "indexnow")
            plant.notify()
            wait_until(server.connected.is_set, "the engine is told")
            server.connected.clear()
            before = len(notices.records())
            rig.send({"type": "upsert", "loc": f"p{n}"})
            plant.wake(rig.name)
            assert rig.quiet()
            if len(notices.records()) == before:
                return
        pytest.fail("each publish took longer than the engine is waited for")
    finally:
        server.over.set()
        plant.stop()


def test_a_worker_that_was_just_started_tells_what_was_left(
    rig: Rig, server: Engine, configured: Configured, until: Wait
) -> None:
    """Without a message and without a schedule (RELIABILITY F17)."""
    enqueue(rig, "indexnow")
    plant = Runtime(configured(indexnow=server.url), "w1")
    plant.start()
    try:
        until(lambda: NotificationQueue(rig.client, rig.name).records(), "the engine is told")
    finally:
        plant.stop()

    assert server.asked[0].json()["urlList"] == [A]
    assert waiting(rig) == 0


def test_after_a_wake_up_its_site_is_looked_at(
    rig: Rig, server: Engine, configured: Configured, until: Wait
) -> None:
    plant = Runtime(configured(indexnow=server.url), "w1")
    plant.start()
    try:
        until(lambda: threading.active_count() > 1, "it runs")
        for n in range(3):
            enqueue(rig, "indexnow")
            rig.client.delete(rig.keys.notified("indexnow"))
            plant.wake(rig.name)
            until(lambda n=n: len(server.asked) > n, "the engine is told")
            until(lambda: waiting(rig) == 0, "that is written down")
    finally:
        plant.stop()


def test_a_worker_that_is_told_so_leaves_it_to_others(
    rig: Rig, server: Engine, configured: Configured, until: Wait
) -> None:
    told: list[str] = []
    plant = Runtime(configured(indexnow=server.url), "w1", on_publish=told.append)
    plant.start()
    try:
        enqueue(rig, "indexnow")
        rig.send({"type": "upsert", "loc": "a"})
        plant.wake(rig.name)
        plant.notify()
        until(rig.quiet, "it is published")
    finally:
        plant.stop()

    assert told == [rig.name]
    assert (server.asked, waiting(rig)) == ([], 1)


def test_a_site_without_engines_costs_nothing(rig: Rig, configured: Configured) -> None:
    told: list[str] = []
    plant = Runtime(configured(), "w1", on_publish=told.append)

    plant.wake(rig.name)

    assert told == []


def test_an_engine_that_hangs_holds_up_no_other(
    rig: Rig, server: Engine, configured: Configured, until: Wait
) -> None:
    with engine(hang) as hanging:
        settings = configured(indexnow=hanging.url, bing=server.url)
        server.script = [reply(200, {"d": None})]
        notifier = Notifier(
            settings, rig.client, "w1", outbound=partial(ask, bounds=NOTIFY._replace(seconds=30))
        )
        enqueue(rig, "indexnow", "bing")
        looking = threading.Thread(target=notifier.look)
        looking.start()
        try:
            until(hanging.connected.is_set, "one hangs")
            until(lambda: waiting(rig, "bing") == 0, "the other is told")
            assert waiting(rig, "indexnow") == 1
        finally:
            hanging.over.set()
            looking.join()
            notifier.stop()


def test_trouble_with_one_engine_is_not_that_of_the_next(
    rig: Rig, server: Engine, configured: Configured
) -> None:
    """Whatever trouble: this one is no error that anybody foresaw."""
    server.script = [reply(200, {"d": None})]
    notifier = Notifier(configured(indexnow=server.url, bing=server.url), rig.client, "w1")
    enqueue(rig, "indexnow", "bing")
    rig.client.set(rig.keys.notified("indexnow"), "no zset")
    try:
        while notifier.look():
            pass
    finally:
        notifier.stop()

    assert [asked.target.partition("?")[0] for asked in server.asked] == ["/SubmitUrlbatch"]


def test_trouble_with_an_engine_ends_with_its_configuration(
    rig: Rig, server: Engine, configured: Configured
) -> None:
    notifier = Notifier(configured(indexnow=server.url, bing=server.url), rig.client, "w1")
    enqueue(rig, "indexnow")
    rig.client.set(rig.keys.notified("indexnow"), "no zset")
    try:
        while notifier.look():
            pass
        assert [each.part for each in notifier.loop.troubles()] == ["indexnow"]

        notifier.prepare(configured(bing=server.url))()
    finally:
        notifier.stop()

    assert notifier.loop.troubles() == []


def test_a_quiet_worker_tells_nobody_until_it_works_again(
    rig: Rig, server: Engine, configured: Configured
) -> None:
    server.script = [reply(200, {"d": None})]
    quiet = [True]
    notifier = Notifier(configured(bing=server.url), rig.client, "w1", lambda: quiet[0])
    enqueue(rig, "bing")
    try:
        assert not notifier.look()
        assert waiting(rig, "bing") == 1

        quiet.clear()
        quiet.append(False)
        notifier.look()
    finally:
        notifier.stop()

    assert waiting(rig, "bing") == 0
    assert len(server.asked) == 1


WORKER = """
import sys
from pathlib import Path
from shared.config.settings import load
from shared.store.connection import connect
from worker.notify.notifier import Notifier
settings = load(Path(sys.argv[1]))
Notifier(settings, connect(settings.redis_url, 10), "w1").look()
"""
CONFIG = """
redis_url = "{redis}"
[sites.demo]
base_url = "https://www.example.com"
web_root = "public"
tokens = ["0123456789abcdef"]
[sites.demo.notify]
hosts = ["127.0.0.1"]
[sites.demo.notify.indexnow]
key = "0123456789abcdef"
endpoints = ["{url}/indexnow"]
allow_private = true
"""


def test_a_worker_killed_between_request_and_answer_loses_no_notice(
    rig: Rig, server: Engine, configured: Configured, redis_server: RedisServer, tmp_path: Path
) -> None:
    """SIGKILL of a real process; the engine has heard it, and hears it again."""
    text = CONFIG.format(redis=redis_server.url, url=server.url)
    (tmp_path / "sitemapd.toml").write_text(text)
    enqueue(rig, "indexnow")
    command = [sys.executable, "-c", WORKER, str(tmp_path / "sitemapd.toml")]
    process = subprocess.Popen(command)
    server.script = [lambda *_: process.kill(), reply(200)]
    assert process.wait(60) == -signal.SIGKILL
    notifier = Notifier(configured(indexnow=server.url), rig.client, "w2")
    try:
        assert not notifier.look(), "its turn has not run out"
        rig.client.delete(rig.keys.notify_lease("indexnow"))
        while notifier.look():
            pass
    finally:
        notifier.stop()

    assert [asked.json()["urlList"] for asked in server.asked] == [[A], [A]]
    assert waiting(rig) == 0
