"""Pages of many sites: the round trips to Redis of one, and little work for each more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import redis
from werkzeug.test import TestResponse

from shared.config.settings import Settings
from tests.integration.conftest import RedisServer
from tests.integration.console.browsing import Browser, settings
from tests.integration.profiling import calling
from webhook.console.views import overview

METRICS = "a-token-that-shows-all-metrics"
FEW, MANY = 60, 160

Get = Callable[[Browser], TestResponse]
PAGES: dict[str, Get] = {
    "overview": lambda browser: browser.get("/admin/"),
    "metrics": lambda browser: browser.get("/metrics", Authorization=f"Bearer {METRICS}"),
}


def fleet(redis_url: str, root: Path, many: int) -> Settings:
    """The first of so many sites, all with something in every place that a page reads."""
    plain = settings(redis_url, root).model_dump()
    plain["sites"] = {
        f"s{n}": {
            "base_url": f"https://s{n}.example.com", "web_root": root / f"s{n}",
            "tokens": [f"a-token-of-the-site-{n}"],
        }
        for n in range(many)
    }  # fmt: skip
    return Settings(**plain | {"metrics_token": METRICS})


def fill(store: redis.Redis, settings: Settings) -> None:
    for name in settings.sites:
        keys = f"{{{name}}}:"
        store.xadd(f"{keys}inbox", {"e": "{}"})
        store.xtrim(f"{keys}inbox", 0, approximate=False)
        store.hset(f"{keys}sections", "pages", 1)
        store.hset(f"{keys}section:pages:files", "1", "3 1795000000 600 1000")
        store.hset(f"{keys}counters", mapping={"urls": 600, "publishes": 7})


class Cost(NamedTuple):
    """What a page costs that is asked for again; the commands within scripts included."""

    trips: int
    commands: int
    calls: int


@pytest.fixture
def cost(redis_server: RedisServer) -> Callable[[Settings, Get], Cost]:
    """Counts round trips and commands to Redis, and calls of Python functions."""

    def count(settings: Settings, get: Get) -> Cost:
        trips = calls = 0

        class Counting(redis.UnixDomainSocketConnection):
            def send_packed_command(self, *args: Any, **options: Any) -> Any:
                nonlocal trips
                trips += 1
                return super().send_packed_command(*args, **options)

        def called(_frame: FrameType) -> None:
            nonlocal calls
            calls += 1

        path = urlsplit(redis_server.url).path
        pool = redis.ConnectionPool(connection_class=Counting, path=path, protocol=2)
        with redis.Redis(connection_pool=pool) as client:
            browser = Browser(settings, client=client)
            browser.login("ann")
            for _ in range(3):  # each connection is greeted once
                assert get(browser).status_code == 200
            before = int(client.info("stats")["total_commands_processed"])
            trips = 0
            assert get(browser).status_code == 200
            found = trips
            commands = int(client.info("stats")["total_commands_processed"]) - before - 1
            with calling(called):
                assert get(browser).status_code == 200
            return Cost(found, commands, calls)

    return count


MOST = {"overview": Cost(6, 8, 28), "metrics": Cost(7, 7, 14)}
"""Round trips of a page, and what one more site costs it: a script with the commands in it. The
table of the Overview is full with FEW.
"""


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_many_sites_takes_the_round_trips_of_one_and_a_script_for_each(
    page: str, cost: Callable[..., Cost], store: redis.Redis, redis_server: RedisServer,
    tmp_path: Path,
) -> None:  # fmt: skip
    some, many = (fleet(redis_server.url, tmp_path, count) for count in (FEW, MANY))
    fill(store, many)

    less, more, most = cost(some, PAGES[page]), cost(many, PAGES[page]), MOST[page]

    assert more.trips == less.trips <= most.trips
    assert (more.commands - less.commands) / (MANY - FEW) <= most.commands
    assert (more.calls - less.calls) / (MANY - FEW) <= most.calls


@pytest.mark.parametrize(("many", "seen"), [(FEW, True), (FEW - 1, False)])
def test_all_who_look_at_thousands_of_sites_share_one_look(
    many: int, seen: bool, store: redis.Redis, redis_server: RedisServer, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(overview, "MANY", many)
    monkeypatch.setattr(overview, "SHARE", 1e-9)
    browser = Browser(fleet(redis_server.url, tmp_path, FEW), client=store)
    browser.login("ann")
    before = browser.get("/admin/").text
    store.xadd("{s7}:dead", {"e": "{}"})

    after = browser.get("/admin/").text

    assert ["failed five times" in each for each in (before, after)] == [False, seen]
