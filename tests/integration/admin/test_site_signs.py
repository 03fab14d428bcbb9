"""Signs of sites as they are in Redis: refusals, events by the hour, engines."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import redis

from shared.admin.attention import concerns
from shared.admin.site_signs import SignReader, SiteSigns
from shared.domain.sender_habit import WEEK
from shared.store.counting.counters import HABIT_WEEKS
from shared.store.notify.notification_queue import Breaker, NotificationQueue
from tests.integration.rig import Rig
from webhook.rejection_log import RejectionLog


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path, notify={"indexnow": {"key": "0123456789abcdef"}})


def signs(rig: Rig) -> SiteSigns:
    (found,) = SignReader(rig.client, {rig.name: rig.site}).read()
    return found


def test_events_are_counted_by_the_hour(rig: Rig, store: redis.Redis) -> None:
    before = int(time.time() * 1000)
    rig.send({"type": "upsert", "loc": "a"}, {"type": "upsert", "loc": "b"})
    rig.send({"type": "upsert", "loc": "c"})
    found = signs(rig).accepted

    assert (HABIT_WEEKS - 1) * WEEK < len(found.hours) <= HABIT_WEEKS * WEEK
    assert sum(found.hours) == sum(found.hours[-2:]) == 3
    assert before <= found.last_ms <= int(time.time() * 1000)
    assert all(
        store.ttl(key) > 0
        for pattern in ("accepted", "hour")
        for key in store.scan_iter(f"{{demo}}:{pattern}:*")
    )


def test_each_hour_of_the_weeks_is_where_it_was(rig: Rig, store: redis.Redis) -> None:
    rig.send({"type": "upsert", "loc": "a"})
    hour = int(time.time() // 3600)
    for back in (1, 30, 200, 600):
        at = hour - back
        key = rig.keys.accepted(at // WEEK)
        store.bitfield(key).incrby("u32", f"#{at % WEEK}", back).execute()
    found = signs(rig).accepted.hours

    assert {n: found[-1 - n] for n in (1, 30, 200, 600)} == {1: 1, 30: 30, 200: 200, 600: 600}
    assert sum(found) == 832


def test_a_count_that_cannot_be_kept_keeps_no_event_out(rig: Rig, store: redis.Redis) -> None:
    store.hset(rig.keys.accepted(int(time.time() // 3600) // WEEK), "no", "string")
    rig.do({"type": "upsert", "loc": "a"})

    assert len(rig.listed()) == 1


def test_refusals_are_told_with_their_number_and_the_address_they_came_from(
    rig: Rig, store: redis.Redis
) -> None:
    log = RejectionLog(rig.settings.model_copy(update={"redis_url": "unix:///nowhere"}))
    for n in range(42):
        client = "203.0.113.9" if n != 1 else "198.51.100.7"
        log.note(rig.name, {"code": "unauthorized", "status": 401, "client": client})
    log.flush(store)
    store.xadd(rig.keys.refused, {"refused": "nonsense"})
    store.xadd(rig.keys.refused, {"refused": json.dumps(["no", "note"])})
    (found,) = concerns(signs(rig))

    assert found.said == "42 bad signatures in 10 minutes, most of them from 203.0.113.9."
    assert "rotate its secret" in found.todo.lower()


def test_an_engine_that_stands_still_is_told_until_it_is_told_of_its_pages(rig: Rig) -> None:
    queue, now = NotificationQueue(rig.client, rig.name), int(time.time() * 1000)
    assert concerns(signs(rig)) == []

    queue.enqueue(["indexnow"], ["https://www.example.com/a"], now - 3_600_000)
    (found,) = concerns(signs(rig))
    assert "indexnow stands still" in found.said
    assert "1 h" in found.said or "60 min" in found.said

    queue.set_breaker("indexnow", "api", Breaker(5, now + 60_000, "status 503"))
    (found,) = concerns(signs(rig))
    assert found.said == "indexnow refused 5 times in a row: status 503."
