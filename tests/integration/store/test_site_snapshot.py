"""A reader that keeps what it read says the same as one that reads for the first time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.events.resync_scope import Scope
from shared.store.keys import Keys
from shared.store.notify.notification_queue import Breaker, NotificationQueue
from shared.store.operations.checks import CheckFinding, CheckReport, CheckStore, ComparisonSummary
from shared.store.operations.queues import PUBLISH, Queues
from shared.store.operations.site_snapshot import Part, SiteSnapshot, SnapshotReader
from shared.store.round_trips import read
from tests.integration.rig import Rig

ENGINES = ("indexnow",)
FINDING = CheckFinding("lost-line", "error", 3, (), "means", "todo")
REPORT = CheckReport(1, 2, "ann", 3, True, (FINDING,))
COMPARED = ComparisonSummary(9, 1, 2, 3, {})
NOTE = {"refused": json.dumps({"code": "stale", "client": "203.0.113.9"})}
Step = Callable[[Rig, Keys], Any]

STEPS: dict[str, Step] = {
    "an event is accepted": lambda rig, _: rig.send({"type": "upsert", "loc": "a"}),
    "a worker reads it": lambda rig, _: rig.inbox.read("w1", 10),
    "all is published": lambda rig, _: rig.settle(),
    "another event is published": lambda rig, _: rig.do({"type": "upsert", "loc": "b"}),
    "a page is removed": lambda rig, _: rig.do({"type": "delete", "loc": "b"}),
    "publishing is paused": lambda rig, _: Queues(rig.client, "demo").pause(PUBLISH, "ann"),
    "an event waits for it": lambda rig, _: (
        rig.send({"type": "upsert", "loc": "c"}), rig.pump().run()
    ),
    "a file is quarantined": lambda rig, _: rig.state.quarantine.stop("disk", "full", "clean up"),
    "publishing is resumed": lambda rig, _: (
        Queues(rig.client, "demo").resume(PUBLISH), rig.settle()
    ),
    "a shard is held": lambda rig, keys: rig.client.hset(keys.held, "pages/1", "7 3 9"),
    "it is let go": lambda rig, keys: rig.client.delete(keys.held),
    "a target is behind": lambda rig, keys: rig.client.hset(
        keys.targets, mapping={"second": "3 9", "second behind": "7"}
    ),
    "it fails": lambda rig, keys: rig.client.hset(keys.targets, "second failing", "9 no route"),
    "it is forgotten": lambda rig, keys: rig.client.delete(keys.targets),
    "an event fails": lambda rig, keys: rig.client.xadd(keys.dead, {"e": "{}"}),
    "a resync is asked for": lambda rig, keys: rig.client.zadd(keys.resync, {str(Scope("*")): 7}),
    "a resync is done": lambda rig, _: rig.resyncs.completed(12_345),
    "a delivery is refused": lambda rig, keys: (
        rig.client.xadd(keys.refused, NOTE),  # type: ignore[arg-type]
        rig.client.hincrby(keys.pulse(int(time.time() // 60)), "refused:stale", 2),
    ),
    "a check ends": lambda rig, _: CheckStore(rig.client, "demo").begin("w1").store(REPORT),
    "the source is compared": lambda rig, _: (
        CheckStore(rig.client, "demo").set_compared(COMPARED)
    ),
    "the differences are repaired": lambda rig, _: (
        CheckStore(rig.client, "demo").set_compared(COMPARED._replace(repaired=True))
    ),
    "a loc waits for its engine": lambda rig, _: (
        NotificationQueue(rig.client, "demo").enqueue(ENGINES, ["https://www.example.com/a"], 5)
    ),
    "an engine refuses": lambda rig, _: (
        NotificationQueue(rig.client, "demo").set_breaker(*ENGINES, "api", Breaker(5, 9, "503"))
    ),
    "the state is repaired": lambda rig, _: rig.audit().rebuild(),
    "the state is gone": lambda rig, _: rig.client.flushdb(),
}  # fmt: skip


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path)


def looked(rig: Rig, reader: SnapshotReader, now_s: float) -> SiteSnapshot:
    (found,) = read(rig.client, reader.reading(["demo"], now_s))
    return found._replace(depth=found.depth._replace(now_ms=0))


@pytest.mark.parametrize("part", ["nothing", "signs", "stats"])
def test_each_change_of_a_site_is_seen(part: Part, rig: Rig) -> None:
    keys = Keys("demo")
    kept, before, unseen = SnapshotReader({"demo": ENGINES}, part), None, []
    for name, step in STEPS.items():
        step(rig, keys)
        now_s = time.time()
        for _ in range(2):  # with and without what the marks stand for
            found = looked(rig, kept, now_s)
            assert found == looked(rig, SnapshotReader({"demo": ENGINES}, part), now_s), name
        if found == before:
            unseen.append(name)
        before = found

    of_signs = [
        "a delivery is refused", "a check ends", "the source is compared",
        "the differences are repaired", "a loc waits for its engine", "an engine refuses",
    ]  # fmt: skip
    assert unseen == ([] if part == "signs" else of_signs)


def test_nothing_is_made_again_of_a_site_that_rests(rig: Rig) -> None:
    rig.do({"type": "upsert", "loc": "a"})
    reader = SnapshotReader({"demo": ()}, "signs")
    for _ in range(2):
        (before,) = read(rig.client, reader.reading(["demo"], time.time()))

    (after,) = read(rig.client, reader.reading(["demo"], time.time()))
    assert after is before

    rig.do({"type": "upsert", "loc": "b"})
    (changed,) = read(rig.client, reader.reading(["demo"], time.time()))
    assert changed.urls == 2


def test_a_server_that_forgot_the_script_is_told_it_again(rig: Rig) -> None:
    reader = SnapshotReader({"demo": (), "other": ()}, "nothing")
    rig.do({"type": "upsert", "loc": "a"})
    rig.client.script_flush()

    found = read(rig.client, reader.reading(["demo", "other"], time.time()))

    assert [each.urls for each in found] == [1, 0]
