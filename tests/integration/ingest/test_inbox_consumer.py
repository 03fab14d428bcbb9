"""The pump: to quiet, in any order, beside others, and through every fault of the store."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.integration.conftest import RedisServer, Wait
from tests.integration.faults import CutError, Fuse, fused_client
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig

DAY_MS = 86_400_000


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def a_history(seed: int) -> list[dict[str, Any]]:
    """300 events about 60 pages, as their sender meant them: each with its version."""
    dice, began = random.Random(seed), time.time_ns() // 1_000_000 - DAY_MS
    events: list[dict[str, Any]] = []
    for version in range(300):
        item = {"loc": f"p/{dice.randrange(60)}", "version": began + version}
        if dice.random() < 0.3:
            events.append({"type": "delete", **item})
        else:
            lastmod = {"lastmod": f"2020-01-{dice.randrange(1, 29):02}"}
            events.append({"type": "upsert", **item, **lastmod})
    return events


def files_of(rig: Rig) -> dict[str, bytes]:
    return rig.shard_files()


def test_any_order_and_any_repetition_of_events_ends_in_the_same_bytes(
    store: redis.Redis, tmp_path: Path
) -> None:
    """DESIGN 8, promise 3. Promised for events with versions of which no two of a page are equal,
    and for pages of one block; else the same entries, in the order in which the pages were first
    heard of.
    """
    for seed in range(50):
        history = a_history(seed)
        shuffled = history * 3
        random.Random(seed).shuffle(shuffled)
        found = []
        for name, events in (("in-order", history), ("shuffled", shuffled)):
            store.flushall()
            rig = Rig(store, tmp_path / f"{name}-{seed}")
            with silence():
                pump = rig.pump()
                for start in range(0, len(events), 300):
                    rig.send(*events[start : start + 300])
                    pump.run()
            found.append((files_of(rig), rig.listed()))

        assert found[0] == found[1], f"seed {seed}"


def test_pages_first_heard_of_in_the_same_order_fill_the_same_files(
    store: redis.Redis, tmp_path: Path
) -> None:
    """Many shards and blocks: what comes after the first event of each page makes no difference."""
    first = [upsert(f"p/{n}", version=1) for n in range(60)]
    found = []
    for name, seed in (("a", 1), ("b", 2)):
        store.flushall()
        rig = Rig(store, tmp_path / name, shard_urls=7, block_urls=3)
        rig.do(*first)
        later = [event for event in a_history(7) if event["type"] == "upsert"] * 2
        random.Random(seed).shuffle(later)
        with silence():
            rig.do(*later)
        rig.check()
        found.append(files_of(rig))

    assert found[0] == found[1]


def _work(url: str, root: Path, consumer: str, stop: Any) -> None:
    with redis.Redis.from_url(url) as client, silence():
        pump = Rig(client, root, shard_urls=20, block_urls=6).pump(consumer)
        while not stop.is_set():
            pump.run()


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_two_workers_at_one_site_at_once_make_no_wrong_entry(
    redis_server: RedisServer, store: redis.Redis, tmp_path: Path, kind: str
) -> None:
    """RELIABILITY F14; a read, a change and a write without comparing: 26 of 200 wrong there."""
    rig = Rig(store, tmp_path / "public", shard_urls=20, block_urls=6)
    context: Any = multiprocessing.get_context("spawn") if kind == "processes" else threading
    make = context.Process if kind == "processes" else threading.Thread
    stop = context.Event()
    workers = [
        make(target=_work, args=(redis_server.url, rig.root, name, stop)) for name in ("w1", "w2")
    ]
    for worker in workers:
        worker.start()
    history = a_history(3)
    shuffled = history * 3
    random.Random(3).shuffle(shuffled)
    for start in range(0, len(shuffled), 9):
        rig.send(*shuffled[start : start + 9])
    deadline = time.monotonic() + 60
    while not rig.quiet():
        assert time.monotonic() < deadline
    stop.set()
    for worker in workers:
        worker.join()

    latest = {event["loc"]: event for event in history}
    expected = {
        BASE + loc: event["lastmod"] for loc, event in latest.items() if event["type"] == "upsert"
    }
    assert expected == rig.listed()
    for loc, event in latest.items():
        page = rig.pages.lookup.find(BASE + loc)
        assert page is not None
        assert event["version"] == page.stamp >> 16
    rig.check()


def test_a_server_that_forgot_its_scripts_is_told_them_again(
    store: redis.Redis, tmp_path: Path
) -> None:
    """RELIABILITY 0, finding 2."""
    rig = Rig(store, tmp_path / "public")
    pump = rig.pump()
    for n in range(5):
        rig.send(upsert(f"p/{n}"))
        store.script_flush()
        pump.run()
        store.script_flush()

    assert len(rig.listed()) == 5
    rig.check()


def test_a_server_that_dies_and_comes_back_goes_on_where_it_was(
    fragile_redis: RedisServer, tmp_path: Path
) -> None:
    """RELIABILITY F5."""
    with fragile_redis.client() as client:
        rig = Rig(client, tmp_path / "public", shard_urls=7)
        rig.do(*(upsert(f"p/{n}") for n in range(30)))
        rig.send(*(upsert(f"p/{n}", lastmod="2020-01-01") for n in range(30)))
        rig.pump().apply_all()
        rig.send(upsert("p/30"))
        fragile_redis.kill()
        fragile_redis.start()

        rig.settle()

        assert len(rig.listed()) == 31
        assert list(rig.listed().values()).count("2020-01-01") == 30
        rig.check()


def test_a_worker_cut_off_at_any_step_is_made_up_for(store: redis.Redis, tmp_path: Path) -> None:
    """RELIABILITY F2, F3: every single step of a change that fills a second shard."""
    steps = cuts = 0
    while cuts == steps:
        store.flushall()
        rig = Rig(store, tmp_path / str(steps), shard_urls=3, block_urls=2, robots="create")
        rig.do(*(upsert(f"p/{n}") for n in range(3)))
        rig.send(
            upsert("p/3"), upsert("p/0", lastmod="2020-01-01"), {"type": "delete", "loc": "p/1"}
        )
        client = fused_client(store, Fuse(steps))
        try:
            with silence():
                Rig(client, rig.root, shard_urls=3, block_urls=2, robots="create").pump().run()
        except CutError:
            cuts += 1
        client.connection_pool.disconnect()
        steps += 1

        rig.settle(seconds=5)

        assert rig.listed() == {
            BASE + "p/0": "2020-01-01", BASE + "p/2": None, BASE + "p/3": None,
        }, f"cut off at step {steps}"  # fmt: skip
        rig.check()
    assert cuts > 20


def test_a_busy_site_gives_way_after_its_time(
    store: redis.Redis, tmp_path: Path, until: Wait
) -> None:
    rig = Rig(store, tmp_path / "public")
    event = rig.parse(upsert(BASE + "a"))
    stop, slept = threading.Event(), list[bool]()

    def keep_it_busy() -> None:
        while not stop.is_set():
            slept.append(rig.inbox.accept([event]).slept)

    sender = threading.Thread(target=keep_it_busy)
    sender.start()
    try:
        with silence():
            until(lambda: rig.pump().run(0.3), "a run that ends although there is more to do")
        until(lambda: slept.count(True) > 1, "an event that wakes somebody, though work is left")
    finally:
        stop.set()
        sender.join()


def test_a_quiet_site_sleeps(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path / "public")
    rig.send(upsert("a"))

    assert not rig.pump().run()

    assert not store.exists(rig.keys.awake)


def test_one_pump_of_a_process_works_at_a_time(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path / "public", publish_interval=3600)
    pump = rig.pump()
    rig.send(upsert("a"))
    pump.run()
    rig.send(upsert("b"))
    first = threading.Thread(target=pump.run)
    first.start()  # waits for its next publish
    try:
        began = time.monotonic()
        while not rig.state.dirty():
            assert time.monotonic() - began < 10
        assert not pump.run()
        assert first.is_alive()
    finally:
        pump.stop()
        first.join()


def test_the_first_change_is_published_at_once_and_the_next_ones_together(
    store: redis.Redis, tmp_path: Path, until: Wait
) -> None:
    """DESIGN 3.4."""
    rig = Rig(store, tmp_path / "public", publish_interval=0.5)
    pump, stop = rig.pump(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            pump.run()

    began = time.monotonic()
    worker = threading.Thread(target=work)
    worker.start()
    try:
        rig.send(upsert("p/0"))
        until((rig.root / "sitemap.xml").exists, "the first publish")
        for n in range(1, 20):
            rig.send(upsert(f"p/{n}"))
        until(lambda: len(rig.listed()) == 20, "the rest")
    finally:
        stop.set()
        worker.join()

    entries: Any = store.xrange(rig.keys.recent)
    publishes = sum(b"published" in fields for _, fields in entries)
    assert publishes <= 2 + int((time.monotonic() - began) / 0.5)
