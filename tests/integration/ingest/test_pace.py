"""The pace of a pump: at once, then at intervals, at rest, stopped, and without memory."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.errors import StoreDownError
from shared.store.publishing.publish_batch import PASS_SHARDS
from tests.integration.conftest import RedisServer, Wait
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from worker.ingest.event_processor import MAX_TRIES
from worker.ingest.inbox_consumer import MOST_AHEAD_S

NEVER_AGAIN = 3600


def page(name: object, kind: str = "upsert", **members: Any) -> dict[str, Any]:
    return {"type": kind, "loc": f"{BASE}{name}"} | members


def publishes(rig: Rig) -> list[int]:
    """When each publish was, in the server's milliseconds."""
    entries: Any = rig.client.xrange(rig.keys.recent)
    return [int(ident.split(b"-")[0]) for ident, said in entries if b"published" in said]


def test_the_first_change_is_published_at_once_and_the_next_ones_wait_for_the_interval(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, publish_interval=NEVER_AGAIN)
    pump = rig.pump()
    rig.send(page("first"))
    with silence():
        assert not pump.run(1), "nothing was left to do"
    assert list(rig.listed()) == [f"{BASE}first"]

    rig.send(*(page(number) for number in range(50)))
    with silence():
        assert pump.run(0.1), "there is more to do"

    assert (len(publishes(rig)), rig.inbox.waiting()) == (1, 0)
    assert list(rig.listed()) == [f"{BASE}first"]
    assert rig.state.dirty()
    rig.settle()  # a pump that is new, as after a restart
    assert len(publishes(rig)) == 2
    rig.check()


def test_a_change_of_nothing_does_not_delay_the_next_publish(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, publish_interval=NEVER_AGAIN)
    pump = rig.pump()
    rig.send(page(1, "delete"))
    with silence():
        pump.run()
        rig.send(page(2))
        assert not pump.run(1)

    assert list(rig.listed()) == [f"{BASE}2"]
    rig.check()


def test_under_load_publishes_are_an_interval_apart(
    store: redis.Redis, tmp_path: Path, until: Wait
) -> None:
    rig = Rig(store, tmp_path, publish_interval=0.2)
    pump, stop, sent = rig.pump(), threading.Event(), [0]
    seen = set[int]()  # what happened lately is kept for so many decisions only

    def send() -> None:
        while not stop.wait(0.005):  # faster, and publishes would soon be trimmed from what is told
            rig.send(page(sent[0]))
            sent[0] += 1

    def five_publishes() -> bool:
        pump.run(0.05)
        seen.update(publishes(rig))
        return len(seen) >= 5

    sender = threading.Thread(target=send)
    with silence():
        sender.start()
        try:
            until(five_publishes, "five publishes")
        finally:
            stop.set()
            sender.join()
        pump.run()

    times = sorted(seen.union(publishes(rig)))
    # The interval is measured from the end of a publish, and the server's clock ticks in ms.
    assert min(later - time for time, later in pairwise(times)) >= 199
    assert len(rig.listed()) == sent[0] > len(times)
    rig.check()


def test_a_pump_that_is_stopped_leaves_what_waits_to_others_and_says_so(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.send(page(1))
    pump = rig.pump()

    pump.stop()
    pump.run()

    assert rig.inbox.waiting() == 1
    assert rig.inbox.accept([rig.parse(page(2))]).slept
    rig.settle(consumer="w2")
    assert len(rig.listed()) == 2


def test_a_site_at_rest_is_woken_by_the_next_event_and_one_at_work_is_not(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    assert rig.inbox.accept([rig.parse(page(1))]).slept
    assert not rig.inbox.accept([rig.parse(page(2))]).slept

    with silence():
        rig.pump().run()

    assert rig.inbox.accept([rig.parse(page(3))]).slept


def test_a_server_without_memory_buries_no_event(
    fragile_redis: RedisServer, tmp_path: Path
) -> None:
    """RELIABILITY F7: however often they are tried."""
    with fragile_redis.client() as client:
        rig = Rig(client, tmp_path)
        rig.do(page("before"))
        rig.send(*(page(number) for number in range(20)))
        pump = rig.pump()
        client.config_set("maxmemory", "1")

        for _ in range(2 * MAX_TRIES):
            with pytest.raises(StoreDownError):
                pump.run()
        with pytest.raises(StoreDownError):
            rig.inbox.accept([rig.parse(page("refused"))])

        assert max(rig.inbox.tries("w1").values()) > MAX_TRIES
        assert rig.inbox.waiting() == 20
        assert not client.exists(rig.keys.dead)
        client.config_set("maxmemory", "0")
        with silence():
            pump.run()
        assert rig.quiet()
        assert len(rig.listed()) == 21
        rig.check()


def test_files_that_change_all_the_time_are_not_dated_ever_further_ahead_of_the_clock(
    store: redis.Redis, tmp_path: Path
) -> None:
    """Without an interval each publish dates its files a second later than the one before."""
    rig = Rig(store, tmp_path, publish_interval=0)
    rig.most_ahead_s = MOST_AHEAD_S
    pump, ahead = rig.pump(), []
    for number in range(12):
        rig.send(page("a", title=str(number), lastmod=f"2026-01-{number + 1:02}"))
        with silence():
            pump.run()
        latest = max((tmp_path / name).stat().st_mtime for name in ("pages-1.xml", "sitemap.xml"))
        ahead.append(latest - time.time())

    assert len(publishes(rig)) == 12
    assert max(ahead) <= MOST_AHEAD_S + 1


def test_a_change_of_more_shards_than_one_pass_takes_is_published_without_a_pause(
    store: redis.Redis, tmp_path: Path
) -> None:
    """The interval keeps back later changes, not the rest of this one."""
    rig = Rig(store, tmp_path, shard_urls=1, publish_interval=NEVER_AGAIN)
    rig.most_ahead_s = MOST_AHEAD_S
    rig.send(*(page(str(number)) for number in range(2 * PASS_SHARDS + 1)))
    with silence():
        rig.pump().run()

    assert rig.quiet()
    assert len(publishes(rig)) == 3
