"""The commands of `sitemapd notify`: what they show, send and put right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from shared.errors import ConfigError
from shared.store.notify.delivery_lease import delivery_lease
from shared.store.notify.notification_queue import Breaker, NotificationQueue
from tests.integration.conftest import RedisServer
from tests.integration.engines import Engine, engine, reply
from tests.integration.logs import silence
from tests.integration.notified import KEY, NOON, SECRET
from tests.integration.rig import Rig

CONFIG = """
redis_url = "{redis}"
[sites.demo]
base_url = "{url}/"
web_root = "public"
tokens = ["0123456789abcdef"]
[sites.demo.notify]
hosts = ["127.0.0.1"]
[sites.demo.notify.indexnow]
key = "{key}"
endpoints = ["{url}/indexnow"]
allow_private = true
[sites.demo.notify.bing]
key = "{secret}"
endpoint = "{url}/bing"
allow_private = true
"""

Run = Callable[..., Result]


@pytest.fixture
def server() -> Iterator[Engine]:
    """The site's web server, IndexNow and Bing in one: they are asked in this order."""
    with engine(reply(200, KEY.encode()), reply(200), reply(200, {"d": None})) as server:
        yield server


@pytest.fixture
def notices(store: redis.Redis) -> NotificationQueue:
    return NotificationQueue(store, "demo")


@pytest.fixture
def run(redis_server: RedisServer, store: redis.Redis, server: Engine, tmp_path: Path) -> Run:
    """Runs a command with the configuration of that site."""
    text = CONFIG.format(redis=redis_server.url, url=server.url, key=KEY, secret=SECRET)
    (tmp_path / "sitemapd.toml").write_text(text)
    Rig(store, tmp_path / "public")

    def command(*arguments: str) -> Result:
        with silence():
            return CliRunner().invoke(app, ["notify", *arguments, "--home", str(tmp_path)])

    return command


def bury(store: redis.Redis, *locs: str) -> None:
    with delivery_lease(store, "demo", "indexnow", "w1") as mine:
        assert mine is not None
        mine.give_up(locs, NOON, "it does not take the key")


def test_a_test_shows_what_would_be_sent_and_sends_nothing(run: Run, server: Engine) -> None:
    found = run("test", "demo", "--json")

    assert found.exit_code == 0
    indexnow, bing = json.loads(found.stdout)
    assert indexnow["sends"][0].startswith(f'POST {server.url}/indexnow  {{"host": "127.0.0.1')
    assert bing["sends"][0].startswith(f'POST {server.url}/bing  {{"siteUrl"')
    assert SECRET not in found.stdout
    assert server.asked == []


def test_a_test_that_sends_looks_at_the_key_and_tells_of_the_home_page(
    run: Run, server: Engine, notices: NotificationQueue, tmp_path: Path
) -> None:
    for endpoint in ("indexnow", "bing"):
        notices.set_breaker(endpoint, f"{server.url}/{endpoint}", Breaker(1, 0, "403", paused=True))

    found = run("test", "--send", "--json")

    assert found.exit_code == 0, found.output
    key, indexnow, bing = server.asked
    assert (key.method, key.target) == ("GET", f"/{KEY}.txt")
    assert indexnow.json()["urlList"] == bing.json()["urlList"] == [f"{server.url}/"]
    assert (tmp_path / "public" / f"{KEY}.txt").read_text() == KEY
    assert [len(row["answers"]) for row in json.loads(found.stdout)] == [2, 1]
    assert notices.breakers() == {}
    assert [fate.engine for fate in notices.records()] == ["bing", "indexnow"]


def test_a_test_that_an_engine_does_not_take_fails(run: Run, server: Engine) -> None:
    server.script = [reply(404), reply(400, {"ErrorCode": 3, "Message": "InvalidApiKey"})]

    found = run("test", "--send", "--json")

    assert found.exit_code == 1
    indexnow, bing = json.loads(found.stdout)
    assert f"{KEY}.txt answers 404" in indexnow["answers"][0]
    assert bing["answers"] == ["forbidden 400 InvalidApiKey"]
    assert "/indexnow" not in [asked.target for asked in server.asked]


def test_a_key_is_made_anew_and_fits_into_the_configuration(run: Run) -> None:
    texts = [run("key", "demo").stdout for _ in range(2)]

    assert texts[0] != texts[1]
    assert re.fullmatch(
        r'\[sites\.demo\.notify\.indexnow\]\nkey = "[0-9a-f]{32}"\n', texts[0]
    )  # fmt: skip
    made = json.loads(run("key", "--json").stdout)
    assert made["url"].endswith(f"/{made['key']}.txt")


def test_the_list_shows_what_waits_what_was_spent_and_who_is_left_alone(
    run: Run, notices: NotificationQueue, server: Engine
) -> None:
    run("test", "--send")
    notices.enqueue(["bing"], ["a", "b"], NOON)
    notices.set_breaker("bing", f"{server.url}/bing", Breaker(1, 0, "the key", paused=True))

    found: dict[str, Any] = json.loads(run("list", "--json").stdout)

    indexnow, bing = found["engines"]
    assert (indexnow["spent_today"], indexnow["daily"], indexnow["waiting"]) == (1, 10_000, 0)
    assert indexnow["left_alone"] == []
    assert (bing["waiting"], bing["due"], bing["next"]) == (2, 2, "2026-11-21T12:00:00Z")
    assert bing["left_alone"] == [
        {"endpoint": f"{server.url}/bing", "until": "replay", "why": "the key"}
    ]
    assert [(fate["engine"], fate["outcome"]) for fate in found["fates"]] == [
        ("bing", "done"), ("indexnow", "done"),
    ]  # fmt: skip
    plain = run("list").stdout
    assert "indexnow done 200" in plain
    assert "the key" in plain


def test_dead_letters_are_shown_and_replayed(
    run: Run, notices: NotificationQueue, store: redis.Redis
) -> None:
    bury(store, "https://x.example/a", "https://x.example/b")
    (letter,) = json.loads(run("dead", "--json").stdout)
    assert (letter["engine"], letter["pages"]) == ("indexnow", 2)
    assert letter["urls"] == ["https://x.example/a", "https://x.example/b"]
    assert "it does not take the key" in run("dead").stdout

    assert json.loads(run("replay", "--engine", "bing", "--json").stdout) == {"replayed": 0}
    assert json.loads(run("replay", "--json").stdout) == {"replayed": 2}

    assert notices.figures("indexnow", NOON)["waiting"] == 2
    assert json.loads(run("dead", "--json").stdout) == []


def test_an_engine_that_is_not_configured_is_not_replayed(run: Run) -> None:
    found = run("replay", "--engine", "yandex")

    assert isinstance(found.exception, ConfigError)
    assert "indexnow, bing" in str(found.exception)
