"""Publishing: what is written and in which order, who may, and what happens when it breaks off."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.config.filenames import MARKER
from shared.sitemap.shards import Shard
from shared.store.keys import LEASE_MS
from shared.store.publishing.publish_work import PublishBatch, PublishedShard
from tests.integration.conftest import RedisServer, Wait
from tests.integration.rig import BASE, Rig, as_written

ONE = Shard("pages", 1)


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", shard_urls=4, robots="create")


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def delete(loc: str) -> dict[str, Any]:
    return {"type": "delete", "loc": loc}


def hold_back(rig: Rig, *items: dict[str, Any]) -> None:
    """Apply, and publish nothing."""
    rig.send(*items)
    rig.pump().apply_all()


def test_a_change_writes_its_shard_and_its_index_and_nothing_else(rig: Rig) -> None:
    """DESIGN 8, promise 4."""
    rig.do(*(upsert(f"p/{n}") for n in range(12)))
    before = rig.files()
    robots = as_written(rig.root / "robots.txt")

    rig.do(upsert("p/5", lastmod="2020-01-01"))

    changed = {name for name, file in rig.files().items() if file != before[name]}
    assert changed == {"pages-2.xml", "sitemap.xml"}
    assert robots == as_written(rig.root / "robots.txt")
    rig.check()


def test_a_change_of_nothing_writes_nothing(rig: Rig) -> None:
    """PROTOCOL O6."""
    rig.do(*(upsert(f"p/{n}") for n in range(5)))
    before = rig.files(), as_written(rig.root / MARKER)

    rig.do(upsert("p/1"), delete("never"), upsert("p/2", noindex=False))

    assert before == (rig.files(), as_written(rig.root / MARKER))


@pytest.mark.parametrize("kept", [None, 0, 60_000, -1])
def test_text_that_the_file_lost_comes_from_the_store(rig: Rig, kept: int | None) -> None:
    """Only the blocks that an event changes are read with the event."""
    large = Rig(rig.client, rig.root.parent / "large", name="large", shard_urls=2_000)
    large.do(*(upsert(f"p/{n}") for n in range(1_200)))
    file = large.root / "pages-1.xml"
    if kept is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:kept])
    large.send({"type": "upsert", "loc": "p/7", "lastmod": "2020-01-01"})
    large.settle(consumer="another")  # which keeps no text in memory

    assert len(large.listed()) == 1_200
    assert large.listed()[f"{BASE}p/7"].startswith("2020-01-01")
    assert not list(large.audit().verify())


def test_blocks_without_patches_come_bare_to_who_has_the_file(rig: Rig) -> None:
    large = Rig(rig.client, rig.root.parent / "large", name="large", shard_urls=2_000)
    large.do(*(upsert(f"p/{n}") for n in range(1_200)))
    hold_back(large, upsert("p/7", lastmod="2020-01-01"))

    def bare(*, text: bool) -> list[bool]:
        begin = large.lease.begin("w2", large.site.index_shards, bare=text)
        begun = large.lease.begun(begin)
        assert isinstance(begun, PublishBatch)
        large.lease.release("w2", [ONE])
        (work,) = begun.taken
        assert sum(block.urls for block in work.blocks.values()) == 1_200
        return [block.bare for number, block in work.blocks.items() if number not in work.patches]

    assert set(bare(text=True)) == {True}
    assert set(bare(text=False)) == {False}


def test_the_index_says_when_the_bytes_of_a_file_changed(rig: Rig) -> None:
    """PROTOCOL M7: on a delete too, never on an equal one, for that file alone."""
    rig.do(*(upsert(f"p/{n}") for n in range(8)))
    (before,) = rig.index().values()

    rig.do(delete("p/1"))

    (after,) = rig.index().values()
    assert after[BASE + "pages-1.xml"] > before[BASE + "pages-1.xml"]
    assert after[BASE + "pages-2.xml"] == before[BASE + "pages-2.xml"]


def test_a_crawler_sees_every_publish_of_one_second(rig: Rig) -> None:
    """RELIABILITY 0, finding 5: its ETag is made of whole seconds."""
    seen = set()
    for n in range(5):
        rig.do(upsert("a", lastmod=f"2020-01-0{n + 1}"))
        seen.add((rig.root / "pages-1.xml").stat().st_mtime_ns // 10**9)

    assert len(seen) == 5


def test_patches_that_a_dead_publisher_took_do_not_hide_those_after_them(rig: Rig) -> None:
    """They are merged in two passes, and the shard is dirty until the second is done."""
    hold_back(rig, upsert("a"))
    rig.begin("dead:1", [ONE])
    rig.lease.release("dead:1")
    hold_back(rig, upsert("b"))

    rig.settle()

    assert set(rig.listed()) == {BASE + "a", BASE + "b"}
    rig.check()


def test_a_successor_takes_the_lease_of_its_former_life_at_once(rig: Rig) -> None:
    hold_back(rig, upsert("a"))
    assert rig.lease.take("w1:in-its-former-life")

    rig.settle(seconds=LEASE_MS / 2000)

    assert set(rig.listed()) == {BASE + "a"}


def test_nobody_takes_the_lease_of_another_that_may_be_at_work(rig: Rig) -> None:
    hold_back(rig, upsert("a"))
    rig.lease.take("w2:1")

    assert rig.pump("w1").publisher.publish() is None
    assert not (rig.root / "sitemap.xml").exists()
    assert rig.lease.holds("w2:1")


def test_a_lease_of_a_dead_publisher_runs_out(rig: Rig) -> None:
    rig.lease.take("w2:1")

    assert 0 < rig.client.pttl(rig.keys.lease) <= LEASE_MS  # type: ignore[operator]


def _publish_and_stop(url: str, root: Path, rename: int) -> None:
    """In a child: stand still right before the `rename`-th file takes its name, or after the last
    before the run marker is written.
    """
    left = iter(range(rename - 1, -1, -1))

    def stop(event: str, args: tuple[object, ...]) -> None:
        writes = event == "open" and args[0] == MARKER and int(args[2]) & os.O_WRONLY  # type: ignore[call-overload]
        if (event == "os.rename" or writes) and next(left, None) == 0:
            os.kill(os.getpid(), signal.SIGSTOP)

    sys.addaudithook(stop)
    with redis.Redis.from_url(url) as client:
        Rig(client, root, shard_urls=4, robots="create").pump("child").run()


def _is_stopped(pid: int | None) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("rename", [1, 2, 3, 4], ids=["file 1", "file 2", "index", "marker"])
def test_a_publisher_paused_past_its_lease_leaves_the_files_right(
    redis_server: RedisServer, rig: Rig, until: Wait, rename: int
) -> None:
    """RELIABILITY F14: stopped after its last look at the lease, overtaken, and gone on."""
    rig.do(*(upsert(f"p/{n}") for n in range(8)))
    hold_back(rig, *(upsert(f"p/{n}", lastmod="2020-01-01") for n in range(8)))
    context = multiprocessing.get_context("spawn")
    arguments = (redis_server.url, rig.root, rename)
    child = context.Process(target=_publish_and_stop, args=arguments, daemon=True)
    child.start()
    until(lambda: _is_stopped(child.pid), "the child to stand still", 60)
    holder: Any = rig.client.get(rig.keys.lease)
    if holder is not None:
        rig.lease.release(holder.decode())  # as whoever has waited long enough does
    rig.do(*(upsert(f"p/{n}", lastmod="2020-01-02") for n in range(8)))
    assert child.pid is not None
    os.kill(child.pid, signal.SIGCONT)
    child.join(20)

    rig.settle()

    assert child.exitcode == 0
    assert set(rig.listed().values()) == {"2020-01-02"}
    rig.check()


def test_bytes_that_a_publisher_put_there_after_its_lease_are_put_right(rig: Rig) -> None:
    """It stood still between its last look at the lease and the renames."""
    rig.do(upsert("a", lastmod="2020-01-01"))
    stale = rig.files()
    rig.do(upsert("a", lastmod="2020-01-02"))
    good = rig.files()
    begun = rig.begin("stale:1", [ONE])
    rig.lease.release("stale:1")
    for name, file in stale.items():
        (rig.root / name).write_bytes(file.content)
    assert not isinstance(begun, str)

    rig.lease.release("stale:1", [ONE])  # its commit, or its end by an error: the lease is lost
    assert rig.state.dirty() == [ONE]
    rig.settle()

    assert rig.files()["pages-1.xml"].content == good["pages-1.xml"].content
    rig.check()


def test_who_ends_without_the_lease_keeps_a_commit_under_way_from_calling_its_shards_clean(
    rig: Rig,
) -> None:
    """It may have put older bytes over those that the other is about to record."""
    hold_back(rig, upsert("a"))
    rig.begin("slow:1", [ONE])
    rig.lease.release("slow:1")  # as whoever has waited long enough does
    begun = rig.begin("next:1", [ONE])
    assert isinstance(begun, PublishBatch)
    (taken,) = begun.taken

    rig.lease.release("slow:1", [ONE])
    assert rig.lease.holds("next:1"), "not its to give back"
    assert rig.lease.commit("next:1", [PublishedShard(taken, {}, None, 0, b"")], {}).publishes

    assert rig.state.dirty() == [ONE]


def test_a_shard_that_never_was_is_not_made_dirty(rig: Rig) -> None:
    rig.lease.release("nobody:1", [Shard("pages", 9)])

    assert not rig.state.dirty()
    assert not rig.state.shards(["pages"])


def test_a_commit_without_the_lease_records_nothing_and_leaves_the_shard_dirty(rig: Rig) -> None:
    rig.do(upsert("a"))
    blocks = rig.client.hgetall(rig.keys.blocks(ONE))
    begun = rig.begin("somebody:1", [ONE])
    assert isinstance(begun, PublishBatch)
    (taken,) = begun.taken
    rig.lease.release("somebody:1")

    done = PublishedShard(taken, {0: None}, None, 0, b"")
    assert rig.lease.commit("nobody:1", [done], {}).publishes == 0

    assert blocks == rig.client.hgetall(rig.keys.blocks(ONE))
    assert rig.state.dirty() == [ONE]
    assert taken.file is not None
    rig.settle()
    rig.check()


def test_a_damaged_shard_is_held_back_and_the_others_are_published(
    store: redis.Redis, tmp_path: Path
) -> None:
    """RELIABILITY F16: one shard's trouble is not the site's."""
    rig = Rig(store, tmp_path, shard_urls=2)
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(4)))
    before = rig.files()["pages-1.xml"]
    blocks = rig.keys.blocks(ONE)
    stored = store.hget(blocks, "0")
    assert isinstance(stored, bytes)
    store.hset(blocks, "0", stored[:-3] + b"xxx")

    rig.send(*({"type": "upsert", "loc": f"p/{n}", "lastmod": "2026-01-01"} for n in range(4)))
    rig.pump().run(5)

    assert rig.files()["pages-1.xml"] == before
    assert b"2026-01-01" in rig.files()["pages-2.xml"].content
    assert rig.state.dirty() == [ONE]
    store.hset(blocks, "0", stored)
    rig.settle()
    assert set(rig.listed().values()) == {"2026-01-01"}
    rig.check()
