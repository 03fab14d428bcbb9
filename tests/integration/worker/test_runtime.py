"""The plant: the sweep finds all work, whoever forgot it, and no site waits for another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.config.settings import Settings
from shared.store.operations.worker_registry import HEARTBEAT, HEARTBEAT_S
from tests.integration.conftest import RedisServer, Wait
from tests.integration.rig import BASE, Rig, settings
from worker import runtime
from worker.ingest import inbox_consumer
from worker.ingest.inbox_consumer import BATCH
from worker.runtime import Runtime

NAMES = ("one", "two")


@pytest.fixture
def config(redis_server: RedisServer, tmp_path: Path) -> Settings:
    sites = {name: settings(tmp_path / name, name=name).sites[name] for name in NAMES}
    return Settings(redis_url=redis_server.url, sites=sites)


@pytest.fixture
def rigs(store: redis.Redis, tmp_path: Path) -> dict[str, Rig]:
    return {name: Rig(store, tmp_path / name, name=name) for name in NAMES}


@pytest.fixture
def running(config: Settings, store: redis.Redis) -> Iterator[None]:  # noqa: ARG001  # emptied first
    plant = Runtime(config, "w1")
    plant.start()
    yield
    plant.stop()


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


@pytest.mark.usefixtures("running")
def test_events_are_published_though_nobody_was_woken(rigs: dict[str, Rig], until: Wait) -> None:
    """RELIABILITY F17."""
    for rig in rigs.values():
        rig.send(upsert("a"))

    until(lambda: all(rig.quiet() for rig in rigs.values()), "the sweep")
    assert [set(rig.listed()) for rig in rigs.values()] == [{BASE + "a"}] * 2


def test_events_that_a_worker_holds_and_forgot_are_settled_by_its_next_sweep(
    config: Settings, rigs: dict[str, Rig]
) -> None:
    """A worker that lives is the only one that may settle them."""
    plant = Runtime(config, "w1")
    rigs["one"].send(upsert("a"))
    plant.sweep()
    rigs["one"].send(upsert("b"))
    assert rigs["one"].inbox.read("w1", 1)

    plant.sweep()

    assert set(rigs["one"].listed()) == {BASE + "a", BASE + "b"}


def test_patches_of_a_dead_publisher_are_published_though_no_event_comes(
    config: Settings, rigs: dict[str, Rig]
) -> None:
    rigs["one"].send(upsert("a"))
    rigs["one"].pump("dead").apply_all()

    Runtime(config, "w1").sweep()

    assert set(rigs["one"].listed()) == {BASE + "a"}


def test_a_wake_up_works_on_its_site_alone(config: Settings, rigs: dict[str, Rig]) -> None:
    for rig in rigs.values():
        rig.send(upsert("a"))
    plant = Runtime(config, "w1")

    plant.wake("two")
    plant.wake("a site that was taken out of the configuration")

    assert [rig.quiet() for rig in rigs.values()] == [False, True]


def test_a_site_in_trouble_does_not_hold_up_the_next(
    config: Settings, rigs: dict[str, Rig]
) -> None:
    """Whatever trouble: this one is no error that anybody foresaw."""
    rigs["one"].client.hset(rigs["one"].keys.files("pages"), "1", "no record")
    for rig in rigs.values():
        rig.send(upsert("a"))

    Runtime(config, "w1").sweep()

    assert [rig.quiet() for rig in rigs.values()] == [False, True]


def test_a_worker_without_a_heartbeat_loses_its_events_to_the_others(
    config: Settings, rigs: dict[str, Rig], store: redis.Redis
) -> None:
    rig, plant = rigs["one"], Runtime(config, "w1")
    rig.send(upsert("a"))
    rig.inbox.read("w2", 10)
    store.set(f"{HEARTBEAT}w2", "1")
    plant.sweep()
    assert rig.inbox.waiting() == 1, "it is alive"

    store.delete(f"{HEARTBEAT}w2")
    plant.sweep()

    assert rig.quiet()
    assert set(rig.listed()) == {BASE + "a"}


@pytest.mark.usefixtures("running")
def test_the_heart_beats_while_the_sweep_is_at_a_busy_site(
    rigs: dict[str, Rig], store: redis.Redis, until: Wait
) -> None:
    stop = threading.Event()

    def keep_it_busy() -> None:
        while not stop.is_set():
            rigs["one"].send(upsert("a"))

    sender = threading.Thread(target=keep_it_busy)
    sender.start()
    try:
        until(lambda: store.exists(f"{HEARTBEAT}w1"), "a heartbeat")
        assert 0 < store.ttl(f"{HEARTBEAT}w1") <= HEARTBEAT_S  # type: ignore[operator]
        store.delete(f"{HEARTBEAT}w1")
        until(lambda: store.exists(f"{HEARTBEAT}w1"), "the next heartbeat")
        rigs["two"].send(upsert("b"))
        until(rigs["two"].quiet, "the other site's turn")
    finally:
        stop.set()
        sender.join()


def test_tidying_forgets_what_is_long_deleted(config: Settings, rigs: dict[str, Rig]) -> None:
    rig = rigs["one"]
    rig.do(upsert("a"))
    rig.do({"type": "delete", "loc": "a"})
    members: Any = rig.client.zrange(rig.keys.tombs, 0, -1)
    rig.client.zadd(rig.keys.tombs, dict.fromkeys(members, 1))

    Runtime(config, "w1").upkeep.tidy()

    assert rig.pages.lookup.find(BASE + "a") is None


def test_a_site_with_much_to_do_takes_turns_with_the_others(
    config: Settings, rigs: dict[str, Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn of no time is one batch: nothing depends on how fast it is."""
    monkeypatch.setattr(runtime, "TURN_S", 0.0)
    monkeypatch.setattr(runtime, "SHORT_TURN_S", 0.0)
    flood, other = rigs["one"], rigs["two"]
    flood.send(*(upsert(f"p{number}") for number in range(4 * BATCH)))
    other.send(upsert("a"))
    plant = Runtime(config, "w1")

    assert plant.take_turn("one"), "more is left after the first turn"
    left = flood.inbox.waiting()
    assert 0 < left < 4 * BATCH
    assert flood.client.exists(flood.keys.awake), "no event wakes it meanwhile"
    plant.take_turn("two")
    assert set(other.listed()) == {BASE + "a"}, "published before the flood is drained"
    plant.sweep()
    assert flood.inbox.waiting() == left, "the sweep leaves it its turn"

    turns = 1
    while plant.take_turn("one"):
        turns += 1
        assert turns < 20
    assert turns >= 3
    assert len(flood.listed()) == 4 * BATCH
    assert flood.quiet()


def test_a_turn_that_was_lost_is_taken_by_the_sweep(
    config: Settings, rigs: dict[str, Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "TURN_S", 0.0)
    monkeypatch.setattr(runtime, "SHORT_TURN_S", 0.0)
    monkeypatch.setattr(inbox_consumer, "TURN_LOST_S", 0.0)
    rigs["one"].send(*(upsert(f"p{number}") for number in range(2 * BATCH)))
    plant = Runtime(config, "w1")
    assert plant.take_turn("one")

    while plant.sweep():
        pass

    assert len(rigs["one"].listed()) == 2 * BATCH
