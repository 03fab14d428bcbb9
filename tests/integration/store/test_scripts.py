"""Each Lua script, made to fail wherever it can, leaves the state as it was or complete (F28).

Redis takes nothing back of a script that fails half way. So each script is called on a state that
its caller has really come to, with each key in turn being of the wrong type, with each record cut
short, without memory; whatever comes of that, an error means that nothing was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.store.client import _INCLUDE, source
from tests.integration.conftest import RedisServer
from tests.integration.rig import Rig
from tests.integration.store.scripted import (
    SCENES,
    SITE,
    Call,
    Image,
    changed,
    content,
    restore,
)

DAMAGED = (b"", b"\1", b"x", b"\xff" * 7)
READ_ONLY = {
    "targets/read_changes",
    "pages/read_buckets",
    "pages/read_records",
    "pages/read_titles",
    "publishing/extend_lease",
}
"""`extend_lease` moves a time to live, and no content."""
READ_IN_ROUND_TRIPS = {"operations/site_snapshot"}
"""Sent among other reads, not by Scripts; writes nothing. Failures: test_site_snapshot.py."""
Plant = Callable[[], object]


def _scripts() -> set[str]:
    """Every script that is called, and not only a part of others."""
    store = Path(str(files("shared.store")))
    texts = {
        path.relative_to(store).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in store.rglob("*.lua")
    }
    parts = {part for text in texts.values() for part in _INCLUDE.findall(text)}
    return texts.keys() - parts


def test_every_script_is_made_to_fail() -> None:
    assert _scripts() - READ_IN_ROUND_TRIPS == SCENES.keys()


class Stage:
    """One call, to be made on its state as it was or with one thing wrong."""

    def __init__(self, client: redis.Redis, call: Call, image: Image) -> None:
        self.client, self.call, self.image = client, call, image
        self.script = client.register_script(source(call.name))
        self.touched: set[bytes] | None = None
        """Keys that are not as in the image; None: any may be another."""
        self.reset()
        self.before = content(client)
        self.fails(lambda: None)
        self.after = content(client)
        self.writes = changed(self.before, self.after)

    def reset(self) -> None:
        """Have the state of the image again."""
        restore(self.client, self.image, self.touched)
        self.touched = set()

    def fails(self, plant: Callable[[], object], *names: bytes) -> str:
        """What the call says once `plant` was done to the keys `names`; it has written nothing
        then.
        """
        self.reset()
        plant()
        self.touched = None
        rest = {name: dump for name, dump in self.before.items() if name not in names}
        self.planted = rest | content(self.client, names)
        said = ""
        try:
            self.script(keys=self.call.keys, args=self.call.args)
        except redis.RedisError as error:
            said = str(error)
        if said:
            assert self.planted == content(self.client), f"half written: {said}"
            self.touched = {*names}
        return said

    def wrong_type(self, name: bytes) -> None:
        """With `name` a key of another type nothing is written, or everything else is."""

        def plant() -> None:
            self.client.delete(name)
            self.client.sadd(name, "of another type")

        if not self.fails(plant, name):
            written = changed(self.planted, content(self.client))
            assert written >= self.writes - {name}, f"{name!r}: incomplete"

    def damaged(self, name: bytes) -> None:
        """With each record of `name` cut short in turn an error means that nothing was written."""
        self.reset()
        kind = self.client.type(name)
        for plant in PLANTS.get(kind, _plant_text)(self, name):
            self.fails(plant, name)

    def fields(self, name: bytes) -> list[bytes]:
        """Some fields of the hash `name`, those that the call adds included."""
        self.reset()
        self.touched = None
        known: Any = self.client.hgetall(name)
        self.script(keys=self.call.keys, args=self.call.args)
        if self.client.type(name) == b"hash":
            known |= self.client.hgetall(name)
        return sorted(known)[:24]


def _plant_fields(stage: Stage, name: bytes) -> Iterator[Plant]:
    for field in stage.fields(name):
        for value in DAMAGED:
            yield partial(stage.client.hset, name, field, value)


def _plant_members(stage: Stage, name: bytes) -> Iterator[Plant]:
    for member in DAMAGED:
        for score in (0, 1.5, "inf", "-inf"):
            yield partial(stage.client.zadd, name, {member: score})


def _plant_entries(stage: Stage, name: bytes) -> Iterator[Plant]:
    many = {f"{n:05}": "" for n in range(9_000)}
    for fields in ({"x": ""}, {"error": "", "tries": "x"}, many):
        yield partial(stage.client.xadd, name, fields)


def _plant_text(stage: Stage, name: bytes) -> Iterator[Plant]:
    for value in DAMAGED:
        yield partial(stage.client.set, name, value)


PLANTS = {b"hash": _plant_fields, b"zset": _plant_members, b"stream": _plant_entries}


@pytest.fixture(params=[0, 1], ids=["valkey", "redis"])
def engine(
    every_engine: list[RedisServer], request: pytest.FixtureRequest
) -> Iterator[redis.Redis]:
    """Each kind of server, which need not keep what these tests do to it."""
    if request.param >= len(every_engine):
        pytest.skip("no redis-server is installed: its scripts are made to fail on Valkey only")
    with every_engine[request.param].client() as client:
        client.flushdb()
        client.config_set("appendfsync", "no")
        yield client
        client.config_set("maxmemory", 0)
        client.config_set("appendfsync", "always")
        client.flushdb()


@pytest.mark.parametrize(
    ("name", "scene"),
    [(name, scene) for name, scenes in SCENES.items() for scene in scenes],
    ids=[scene.__name__.strip("_") for scenes in SCENES.values() for scene in scenes],
)
def test_a_script_that_fails_has_written_nothing(
    engine: redis.Redis, tmp_path: Path, name: str, scene: Callable[[Any], None]
) -> None:
    rig: Any = Rig(engine, tmp_path, **SITE)
    scene(rig)
    ((call, before),) = rig.found
    stage = Stage(engine, call, before)
    assert call.name == name
    assert bool(stage.writes) == (name not in READ_ONLY)

    for key in sorted(stage.before.keys() | stage.writes):
        stage.wrong_type(key)
    for key in sorted(stage.before):
        stage.damaged(key)


def test_a_script_without_memory_has_written_nothing(engine: redis.Redis, tmp_path: Path) -> None:
    for scenes in SCENES.values():
        for scene in scenes:
            engine.flushdb()
            rig: Any = Rig(engine, tmp_path / scene.__name__, **SITE)
            scene(rig)
            ((call, before),) = rig.found
            stage = Stage(engine, call, before)
            said = stage.fails(lambda: engine.config_set("maxmemory", 1))
            engine.config_set("maxmemory", 0)
            written = changed(stage.planted, content(engine))
            assert said or written == stage.writes, call.name
