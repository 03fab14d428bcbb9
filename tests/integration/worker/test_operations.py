"""What one event costs, counted and not timed: round trips, commands, file operations, calls."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import redis
from redis.connection import AbstractConnection
from werkzeug.test import EnvironBuilder

import webhook.app
from tests.integration.conftest import SECRET, RedisServer, Signer
from tests.integration.profiling import calling
from tests.integration.rig import BASE, Rig
from worker.ingest.inbox_consumer import InboxConsumer

FILES = ("open", "rename", "fsync", "unlink", "stat", "writev", "write")


class Operations(Counter[str]):
    """How often each was done between `begin` and now."""


@contextmanager
def counted(store: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operations]:
    """Count what this process sends to Redis, what Redis does, and what happens to files."""
    found = Operations()

    def trip(connection: AbstractConnection, command: Any, check_health: bool = True) -> Any:
        parts = [command] if isinstance(command, bytes) else list(command)
        found["round trips"] += 1
        found["bytes to redis"] += sum(map(len, parts))
        return sent(connection, parts, check_health)

    sent = AbstractConnection.send_packed_command

    def counting(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            found[name] += 1
            if name == "rename" and "round trips before a rename" not in found:
                found["round trips before a rename"] = found["round trips"]
            if name in {"write", "writev"}:
                given = arguments[1] if name == "writev" else [arguments[1]]
                found["bytes to disk"] += sum(map(len, given))
            return real(*arguments, **options)

        return call

    def called(_frame: FrameType) -> None:
        found["python calls"] += 1

    before = commands(store)
    with monkeypatch.context() as patched:
        patched.setattr(AbstractConnection, "send_packed_command", trip)
        for name in FILES:
            patched.setattr(os, name, counting(name))
        with calling(called):
            yield found
    found["commands"] = sum((commands(store) - before).values())


def commands(store: redis.Redis) -> Counter[str]:
    """The commands that Redis has run, those inside scripts too."""
    stats: Any = store.info("commandstats")
    ignored = {"cmdstat_info", "cmdstat_config|resetstat"}
    return Counter({name: each["calls"] for name, each in stats.items() if name not in ignored})


class Road:
    """One site, its webhook and its worker in this process, both warm."""

    def __init__(self, url: str, store: redis.Redis, root: Path, signed: Signer) -> None:
        self.rig = Rig(store, root, secrets=[SECRET])
        self.settings = self.rig.settings.model_copy(update={"redis_url": url})
        self.web = webhook.app.create_app(self.settings).test_client()
        self.consumer: InboxConsumer = self.rig.pump()
        self.signed = signed
        self.post(*({"loc": f"{BASE}{n}"} for n in range(500)))
        self.consumer.run()
        self.post({"loc": f"{BASE}0", "lastmod": "2026-11-01"})
        self.consumer.run()

    def post(self, *items: dict[str, Any]) -> None:
        body = json.dumps([{"type": "upsert", **item} for item in items]).encode()
        headers = self.signed(body, ident=os.urandom(8).hex())
        answer = self.web.post("/v1/sites/demo/events", data=body, headers=headers)
        assert answer.status_code == 202, answer.text


@pytest.fixture
def road(redis_server: RedisServer, store: redis.Redis, tmp_path: Path, signed: Signer) -> Road:
    return Road(redis_server.url, store, tmp_path / "public", signed)


MOST = {
    # To the webhook 1; then 4 until the files change: read, look up, apply and take the patches,
    # ask for the lease; and 2: commit, and rest.
    "one changed URL": {
        "round trips": 7, "round trips before a rename": 5, "commands": 110,
        "bytes to redis": 4_500, "python calls": 1_380,
        # The shard and its index, and their directory.
        "rename": 2, "fsync": 3, "open": 4, "stat": 5, "unlink": 0, "writev": 2, "write": 0,
        "bytes to disk": 30_000,
    },
    "500 changed URLs of one file": {
        "round trips": 10, "commands": 2_300, "bytes to redis": 152_000, "python calls": 74_500,
        "rename": 2, "fsync": 3, "open": 4, "stat": 5, "unlink": 0, "writev": 2, "write": 0,
        "bytes to disk": 46_000,
    },
    "nothing new": {
        "round trips": 5, "commands": 45, "bytes to redis": 1_900, "python calls": 960,
        "rename": 0, "fsync": 0, "open": 0, "stat": 0, "unlink": 0, "writev": 0, "write": 0,
        "bytes to disk": 0,
    },
}  # fmt: skip
"""What each may cost at most: for calls and bytes what it costs today and a tenth, for another
Python or library; for all else just that.
"""


@pytest.mark.parametrize("case", MOST)
def test_an_event_costs_no_more_operations_than_it_needs(
    road: Road, store: redis.Redis, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    changed = {"loc": f"{BASE}7", "lastmod": "2026-11-02"}
    items = {
        "one changed URL": [changed],
        "500 changed URLs of one file": [changed | {"loc": f"{BASE}{n}"} for n in range(500)],
        "nothing new": [{"loc": f"{BASE}7"}],
    }[case]

    with counted(store, monkeypatch) as cost:
        road.post(*items)
        road.consumer.run()

    over = {name: (cost[name], most) for name, most in MOST[case].items() if cost[name] > most}
    assert not over, f"{case} costs more: {over}"


MOST_OF_A_POST = {"round trips": 1, "commands": 14, "bytes to redis": 430, "python calls": 355}
"""What the webhook may take for one signed event, from its WSGI environment to its answer."""


def test_an_accepted_post_costs_no_more_operations_than_it_needs(
    road: Road, store: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({"type": "upsert", "loc": f"{BASE}7", "lastmod": "2026-11-02"}).encode()
    headers = road.signed(body, ident="counted")
    request = EnvironBuilder("/v1/sites/demo/events", method="POST", data=body, headers=headers)
    environ, answered = request.get_environ(), list[str]()

    with counted(store, monkeypatch) as cost:
        road.web.application(environ, lambda status, *_rest: answered.append(status))

    assert answered == ["202 ACCEPTED"]
    over = {name: (cost[name], most) for name, most in MOST_OF_A_POST.items() if cost[name] > most}
    assert not over, f"it costs more: {over}"
