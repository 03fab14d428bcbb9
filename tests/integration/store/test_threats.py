"""RELIABILITY 2 behind the door: what a bad store, or bad data in it, may not bring about."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from shared.errors import UnsafeStoreError
from shared.store.server_settings import check_settings
from tests.integration.conftest import RedisServer
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from worker.ingest.event_processor import MAX_TRIES

ROOT = Path(__file__).resolve().parents[3]
ADDRESS = "/v1/sites/demo/events"
UPSERT = json.dumps({"type": "upsert", "loc": "https://www.example.com/a"}).encode()


@pytest.mark.parametrize("bad", ["\x0b", "\ufffe", "</lastmod></url>", "&", "\ud800"])
@pytest.mark.parametrize("member", ["lastmod", "priority", "loc"])
def test_t14_an_event_that_no_file_can_hold_is_buried_and_the_old_file_stays(
    store: redis.Redis, tmp_path: Path, member: str, bad: str
) -> None:
    """Past the door, as a fault of ours or somebody at Redis would put it there."""
    rig = Rig(store, tmp_path)
    rig.do({"type": "upsert", "loc": "good"})
    before = rig.files()
    event = {"v": 1, "type": "upsert", "loc": f"{BASE}bad"}
    event[member] = f"{event.get(member, 2020)}{bad}"
    store.xadd(rig.keys.inbox, {"e": json.dumps(event)})

    with silence():
        for _ in range(MAX_TRIES):
            rig.pump().run()

    if member == "loc" and bad == "&":
        assert rig.listed().keys() == {f"{BASE}good", event["loc"]}
    else:
        assert rig.files() == before
        assert store.xlen(rig.keys.dead) == 1
    assert rig.quiet()
    rig.check()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("appendonly", "no"), ("appendfsync", "everysec"), ("maxmemory-policy", "allkeys-lru"),
        ("no-appendfsync-on-rewrite", "yes"),
    ],
)  # fmt: skip
def test_t24_a_server_that_may_lose_events_is_refused_by_name(
    fragile_redis: RedisServer, name: str, value: str
) -> None:
    with fragile_redis.client() as client:
        check_settings(client)
        client.config_set(name, value)

        with pytest.raises(UnsafeStoreError, match=f"{name} is '{value}': set it to"):
            check_settings(client)


CIRCLES = """
import gc, sys
from shared.store.connection import connect
class Holder: pass
for _ in range(30):
    holder = Holder()
    holder.me, holder.client = holder, connect(sys.argv[1], 1.0)
    holder.client.ping()
    del holder
    gc.collect()
"""


def test_clients_that_go_with_a_circle_of_garbage_leave_no_connection_open(
    redis_server: RedisServer,
) -> None:
    """In a process of its own: which of them goes first differs once memory was in use."""
    said = subprocess.run(
        [sys.executable, "-W", "always", "-c", CIRCLES, redis_server.url],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip

    assert "unclosed" not in said.stderr
