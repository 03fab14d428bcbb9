"""Sweeps with no Celery at all: much work, sites in trouble, shards to be drained, the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.store.operations.site_work import with_work
from shared.store.operations.worker_registry import HEARTBEAT
from tests.bench.idle import counting
from tests.integration.conftest import RedisServer, Wait
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from worker.runtime import Runtime


def page(name: object, kind: str = "upsert", **members: Any) -> dict[str, Any]:
    return {"type": kind, "loc": f"{BASE}{name}"} | members


@pytest.fixture
def sites(store: redis.Redis, tmp_path: Path) -> list[Rig]:
    return [Rig(store, tmp_path / name, name=name, shard_urls=8) for name in ("a", "b")]


@pytest.fixture
def plant(sites: list[Rig], redis_server: RedisServer) -> Runtime:
    every = {rig.name: rig.site for rig in sites}
    settings = sites[0].settings.model_copy(update={"sites": every, "redis_url": redis_server.url})
    return Runtime(settings, "me")


@contextmanager
def started(plant: Runtime) -> Iterator[None]:
    plant.start()
    try:
        yield
    finally:
        plant.stop()


def sweep(plant: Runtime) -> None:
    with silence():
        while plant.sweep():
            pass


def test_a_sweep_of_idle_sites_takes_one_round_trip(sites: list[Rig], plant: Runtime) -> None:
    for rig in sites:
        rig.do(page("a"))
    sweep(plant)

    with counting() as counts:
        assert not plant.sweep()

    assert counts["round trips to Redis"] == 1


def test_sites_with_work_are_found_also_where_one_cannot_be_read(
    sites: list[Rig], store: redis.Redis
) -> None:
    idle, busy = sites

    def found(now_ms: int = 1, most: int = 1_000_000) -> set[str]:
        return {*with_work(store, ["a", "b"], now_ms, most)}

    assert found() == set()
    busy.send(page("a"))
    assert found() == {"b"}
    busy.settle()
    assert found() == set()
    busy.state.mark_dirty(busy.state.files(["pages"]))
    assert found() == {"b"}
    busy.settle()
    assert found(most=1) == {"b"}
    store.zadd(idle.keys.expiry, {f"{BASE}a": 2})
    assert [found(1), found(2)] == [set(), {"a"}]
    store.set(busy.keys.inbox, "no stream")
    assert found() == {"b"}
    with redis.Redis(unix_socket_path="/nowhere") as away:
        assert with_work(away, ["a", "b"], 1, 1) == {"a", "b"}


def test_a_sweep_finds_all_work_whose_wake_up_never_came(sites: list[Rig], plant: Runtime) -> None:
    """RELIABILITY F17."""
    for rig in sites:
        rig.send(*(page(number) for number in range(20)))

    sweep(plant)

    for rig in sites:
        assert rig.quiet()
        assert len(rig.listed()) == 20
        rig.check()


@pytest.mark.parametrize("trouble", ["web root", "store"])
def test_the_trouble_of_one_site_is_not_that_of_the_next(
    sites: list[Rig], plant: Runtime, store: redis.Redis, until: Wait, trouble: str
) -> None:
    bad, good = sites
    if trouble == "web root":
        bad.root.write_bytes(b"a file where a directory should be")
    else:
        store.rpush(bad.keys.lease, "of the wrong type")
        store.expire(bad.keys.lease, 600)
    for rig in sites:
        rig.send(page(1))

    sweep(plant)
    sweep(plant)

    assert good.quiet()
    good.check()
    if trouble == "web root":
        bad.root.unlink()
    else:
        store.delete(bad.keys.lease)

    def swept() -> bool:
        sweep(plant)
        return bad.quiet()

    until(swept, "the next try after the back-off")
    assert list(bad.listed()) == [f"{BASE}1"]


def test_a_plant_that_was_started_beats_and_works_by_itself_until_it_is_stopped(
    sites: list[Rig], plant: Runtime, store: redis.Redis, until: Wait
) -> None:
    with silence(), started(plant):
        until(lambda: store.exists(f"{HEARTBEAT}me"), "a heartbeat")
        for rig in sites:
            rig.send(page(1))
        until(lambda: all(rig.quiet() for rig in sites), "the sweep to come by")

    assert store.ttl(f"{HEARTBEAT}me") > 0
    for rig in sites:
        rig.check()
    sites[0].send(page(2))
    sweep(plant)
    assert sites[0].inbox.waiting() == 1, "a worker that ends takes nothing up any more"


def test_tidying_empties_a_shard_that_is_nearly_empty_and_loses_no_page(
    sites: list[Rig], plant: Runtime
) -> None:
    rig = sites[0]
    rig.do(*(page(number) for number in range(20)))
    rig.do(*(page(number, "delete") for number in range(1, 8)))
    before = rig.listed()

    with silence():
        plant.upkeep.tidy()
    sweep(plant)

    assert rig.listed() == before
    assert "pages-1.xml" not in rig.files()
    rig.check()
