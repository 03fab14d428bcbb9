"""What a publisher wrote itself it does not read again, unless others wrote since."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.sitemap.blocks import Block
from shared.sitemap.shards import Shard
from shared.store.publishing import publish_batch
from tests.integration.rig import BASE, Rig, restore_keys, stored_keys
from worker.checks.verify import Verification
from worker.ingest.inbox_consumer import InboxConsumer


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", shard_urls=12, block_urls=3, index_shards=2)


def publish(rig: Rig, pump: InboxConsumer, *locs: str, **members: Any) -> None:
    rig.send(*({"type": "upsert", "loc": loc, **members} for loc in locs))
    while not rig.quiet():
        pump.run()


def warm(rig: Rig, pump: InboxConsumer) -> None:
    """Publish eight blocks, and one change of each of the two files."""
    publish(rig, pump, *(f"p/{n:02}" for n in range(24)))
    publish(rig, pump, "p/00", "p/12", lastmod="2020-01-01")


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The blocks that were read, as stored."""
    found: list[bytes] = []
    unpack = Block.unpack

    def seen(stored: bytes) -> Block:
        found.append(stored)
        return unpack(stored)

    monkeypatch.setattr(Block, "unpack", seen)
    return found


def test_a_change_reads_the_block_it_changes_and_no_other(rig: Rig, unpacked: list[bytes]) -> None:
    pump = rig.pump()
    warm(rig, pump)
    unpacked.clear()

    publish(rig, pump, "p/05", lastmod="2020-01-02")

    assert len(unpacked) == 1
    rig.check()


def test_publishers_that_take_turns_write_what_each_of_them_is_to_know(rig: Rig) -> None:
    pumps, history = [rig.pump(f"w{n}") for n in range(3)], random.Random(3)
    warm(rig, pumps[0])
    for turn in range(40):
        some = history.sample(range(30), 2)
        publish(
            rig, history.choice(pumps), *(f"p/{n:02}" for n in some), lastmod=f"20{turn + 10}-01-01"
        )
        rig.check()
        rig.send({"type": "delete", "loc": f"p/{history.randrange(30):02}"})


@pytest.mark.parametrize("most", [0, 1_500])
def test_content_that_takes_too_much_room_is_read_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(publish_batch, "MOST_KNOWN", most)
    pump, history = rig.pump(), random.Random(4)
    warm(rig, pump)

    for turn in range(10):
        publish(rig, pump, f"p/{history.randrange(24):02}", lastmod=f"20{turn + 10}-01-01")

        rig.check()
        assert publish_batch._Known._size <= most


def test_a_repair_makes_publishers_read_again(rig: Rig, store: redis.Redis) -> None:
    pump = rig.pump()
    warm(rig, pump)
    store.hset(rig.keys.index(0), "99", store.hget(rig.keys.index(0), "0") or b"")
    Verification(store, rig.name, rig.site, "admin").rebuild()

    publish(rig, pump, "p/05", lastmod="2020-01-02")

    assert len(rig.index()["sitemap.xml"]) == 2
    rig.check()


def test_a_state_that_was_set_back_is_read_again(rig: Rig, store: redis.Redis) -> None:
    pump, files = rig.pump(), rig.root.with_name("kept")
    warm(rig, pump)
    shutil.copytree(rig.root, files)
    kept = stored_keys(store)
    publish(rig, pump, "p/01", "p/13", lastmod="2020-02-02")
    restore_keys(store, kept)
    for path in files.iterdir():
        shutil.copy2(path, rig.root / path.name)

    publish(rig, pump, "p/05", "p/20", lastmod="2020-01-02")

    assert rig.listed()[f"{BASE}p/01"] is None
    rig.check()


def test_a_block_that_is_lost_is_noticed_by_its_number(rig: Rig, store: redis.Redis) -> None:
    pump = rig.pump()
    warm(rig, pump)
    store.hdel(rig.keys.blocks(Shard("pages", 1)), "3")

    publish(rig, pump, "p/00", lastmod="2020-01-02")

    assert f"{BASE}p/11" not in rig.listed(), "the file shows what the state says"
