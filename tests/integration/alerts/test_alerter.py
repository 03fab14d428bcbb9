"""One message when an alert begins and one when it ends, whoever watches and whatever restarts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import standardwebhooks

from shared.config.settings import Settings
from shared.domain.sender_habit import WEEK
from shared.store.keys import EVERYWHERE, Keys
from shared.store.notify.notification_queue import Breaker, NotificationQueue
from shared.store.operations.alert_store import AlertStore
from shared.store.operations.checks import CheckStore, ComparisonSummary
from shared.store.operations.queues import Queues
from tests.file_systems import fill, small_file_system
from tests.integration.engines import Engine, engine, reply
from tests.integration.rig import check_keys
from worker.alerts.alerter import Alerter
from worker.alerts.delivery import FIRST_MS, GIVE_UP_MS

WHSEC = "whsec_" + "QUJD" * 11
MINUTE, HOUR = 60_000, 3_600_000


class Watch:
    """Sites with a webhook for their alerts, and workers that watch by a clock of the test's."""

    def __init__(self, store: redis.Redis, root: Path, receiver: Engine, **given: Any) -> None:
        self.store, self.root, self.receiver = store, root, receiver
        self.now_ms = time.time_ns() // 1_000_000
        self.workers: dict[str, Alerter] = {}
        self.sites = ["demo", "other"]
        channel = {"url": receiver.url, "secret": WHSEC, "allow_private": True}
        self.alerts: dict[str, Any] = {"webhook": channel, "group_seconds": 0, "name": "host"}
        self.alerts |= given

    def settings(self) -> Settings:
        site = {"base_url": "https://www.example.com", "tokens": ["0123456789abcdef"]}
        site["notify"] = {"bing": {"key": "0123456789abcdef"}}  # type: ignore[assignment]
        return Settings.model_validate({
            "alerts": self.alerts,
            "sites": {name: {**site, "web_root": self.root / name} for name in self.sites},
        })  # fmt: skip

    def look(self, worker: str = "w1", minutes: float = 0) -> None:
        """Let time pass, and a worker look until nothing more is to be sent."""
        self.now_ms += int(minutes * MINUTE)
        if worker not in self.workers:
            self.workers[worker] = Alerter(self.settings(), self.store, worker,
                clock=lambda: self.now_ms, jitter=lambda: 0.0)  # fmt: skip
        while self.workers[worker].look():
            pass

    def restart(self, worker: str) -> None:
        """Kill the worker: nothing is given back, and its lease runs out."""
        del self.workers[worker]
        self.store.delete(EVERYWHERE + "alerting")

    def fail(self, site: str = "demo", events: int = 1) -> None:
        for _ in range(events):
            self.store.xadd(Keys(site).dead, {"e": "{}", "error": "x", "id": "1-0", "tries": "5"})

    def revive(self, site: str = "demo") -> None:
        self.store.delete(Keys(site).dead)

    def told(self) -> list[tuple[list[str], list[str]]]:
        """Of each message: conditions and sites that began, and those that ended."""
        found = []
        for asked in self.receiver.asked:
            data = standardwebhooks.Webhook(WHSEC).verify(asked.body, asked.headers)["data"]
            found.append(tuple(
                [f"{each['condition']} {each['site']}" for each in data[kind]]
                for kind in ("began", "ended")
            ))  # fmt: skip
        return found  # type: ignore[return-value]

    def troubles(self, worker: str = "w1") -> list[str]:
        return [f"{each.part}: {each.reason}" for each in self.workers[worker].loop.troubles()]


@pytest.fixture
def receiver() -> Iterator[Engine]:
    with engine(reply(204)) as server:
        yield server


@pytest.fixture
def watch(store: redis.Redis, tmp_path: Path, receiver: Engine) -> Watch:
    return Watch(store, tmp_path, receiver)


def test_a_failed_event_is_one_message_and_its_end_another(watch: Watch) -> None:
    watch.look()
    watch.fail()
    for _ in range(5):
        watch.look(minutes=1)
    assert watch.told() == [(["failed demo"], [])]

    watch.revive()
    for _ in range(10):
        watch.look(minutes=1)
    assert watch.told()[1:] == [([], ["failed demo"])]
    assert not AlertStore(watch.store, "test").board().alerts
    check_keys(watch.store)


def test_two_workers_and_restarts_send_each_message_once(watch: Watch) -> None:
    watch.fail()
    for minute in range(6):
        watch.look(f"w{minute % 2}", minutes=1)
        if minute % 3 == 2:
            watch.restart(f"w{minute % 2}")
    watch.revive()
    for minute in range(12):
        watch.look(f"w{minute % 2}", minutes=1)
        if minute % 3 == 1:
            watch.restart(f"w{minute % 2}")

    assert watch.told() == [(["failed demo"], []), ([], ["failed demo"])]


def test_a_worker_that_stops_leaves_the_watch_to_another_at_once(watch: Watch) -> None:
    watch.look("w1")
    watch.fail()
    watch.workers["w1"].stop()
    watch.look("w2", minutes=1)
    watch.look("w2", minutes=2)

    assert watch.told() == [(["failed demo"], [])]


def test_a_worker_without_the_lease_writes_nothing(watch: Watch) -> None:
    watch.look("w1")
    watch.fail()
    watch.look("w2", minutes=5)
    watch.look("w2", minutes=5)

    assert not watch.told()
    assert not AlertStore(watch.store, "test").board().alerts


def test_what_happens_at_once_is_one_message(watch: Watch) -> None:
    watch.alerts["group_seconds"] = 60
    watch.look()
    for site in watch.sites:
        watch.fail(site)
        watch.store.hset(Keys(site).held, "pages/1", "1700000000 1 100")
    watch.look()
    watch.look(minutes=2)
    assert not watch.told()
    watch.look(minutes=1)

    ((began, ended),) = watch.told()
    assert began == ["failed demo", "failed other", "held demo", "held other"]
    assert not ended


def test_a_condition_that_wavers_for_hours_is_no_flood(watch: Watch) -> None:
    watch.alerts |= {"messages_per_hour": 4, "end_minutes": 0, "failed": {"after_minutes": 0}}
    for _ in range(6 * 20):
        watch.fail()
        watch.look(minutes=1.5)
        watch.revive()
        watch.look(minutes=1.5)

    assert len(watch.told()) <= 6 * 4 + 4
    known = set[str]()
    for began, ended in watch.told():
        assert not known & set(began)
        assert known >= set(ended)
        known = (known | set(began)) - set(ended)


def test_every_condition_is_found_where_it_is_stored(watch: Watch) -> None:
    watch.alerts["silent"] = {"limit": 1}
    keys, store, long_ago = Keys("demo"), watch.store, watch.now_ms - HOUR
    watch.fail()
    store.zadd(keys.dirty, {"pages/1": long_ago})
    store.hset(keys.held, "pages/1", "1700000000 1 100")
    NotificationQueue(store, "demo").set_breaker("bing", "https://x", Breaker(3, 0, "403"))
    found = ["missing-file", "error", 2, [], "m", "t"]
    report = [0, 0, "", 1, False, [found, ["missing", "error", 1, [], "m", "t"]]]
    store.hset(keys.checks, "report", json.dumps(report))
    CheckStore(store, "demo").set_compared(ComparisonSummary(0, 3, 0, 0, {}))
    watch.look()
    watch.look(minutes=2)
    watch.look(minutes=30)

    assert [began for began, _ in watch.told()] == [
        ["drift demo", "failed demo", "held demo", "late demo", "source demo"], ["engines demo"],
    ]  # fmt: skip


def test_a_site_out_of_the_scope_of_a_condition_is_not_watched(watch: Watch) -> None:
    watch.alerts["failed"] = {"sites": ["other"]}
    for site in watch.sites:
        watch.fail(site)
    watch.look()
    watch.look(minutes=3)

    assert watch.told() == [(["failed other"], [])]


def test_what_is_paused_is_not_late(watch: Watch) -> None:
    watch.store.zadd(Keys("demo").dirty, {"pages/1": watch.now_ms - HOUR})
    Queues(watch.store, "demo").pause("publish", "test")
    watch.look()
    watch.look(minutes=9)

    assert not watch.told()


def test_a_sender_that_falls_silent_against_its_habit_is_told_and_its_return(watch: Watch) -> None:
    """An event in each hour of the last weeks but the last six."""
    keys, hour = Keys("demo"), int(time.time() // 3600)
    for back in range(6, 3 * WEEK):
        at = hour - back
        watch.store.bitfield(keys.accepted(at // WEEK)).incrby("u32", f"#{at % WEEK}", 1).execute()
    watch.store.xadd(keys.inbox, {"e": "{}"}, id=f"{(hour - 6) * HOUR}-0")
    watch.store.xtrim(keys.inbox, maxlen=0, approximate=False)
    watch.look()
    watch.look(minutes=2)
    assert watch.told() == [(["silent demo"], [])]

    for at in (hour, hour + 1):
        watch.store.bitfield(keys.accepted(at // WEEK)).incrby("u32", f"#{at % WEEK}", 1).execute()
    watch.store.xadd(keys.inbox, {"e": "{}"})
    watch.store.xtrim(keys.inbox, maxlen=0, approximate=False)
    watch.look(minutes=1)
    watch.look(minutes=6)
    assert watch.told()[1:] == [([], ["silent demo"])]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB in place of the web root of `demo`."""
    with small_file_system(tmp_path / "demo") as place:
        yield place


def test_a_disk_that_fills_up_is_told_and_that_it_has_room_again(
    watch: Watch, small_disk: Path
) -> None:
    watch.look()
    fill(small_disk / "full")
    watch.look()
    watch.look(minutes=2)
    assert watch.told() == [(["disk demo"], [])]
    body = watch.receiver.asked[0].json()
    assert f"100 % of {small_disk} are used" in body["data"]["began"][0]["said"]

    (small_disk / "full").unlink()
    watch.look()
    watch.look(minutes=5)
    assert watch.told()[1:] == [([], ["disk demo"])]


def test_a_redis_that_is_nearly_full_is_an_alert_of_no_site(watch: Watch) -> None:
    used = int(watch.store.info("memory")["used_memory"])
    watch.store.config_set("maxmemory", int(used * 1.05))
    try:
        watch.look()
        watch.look(minutes=2)
    finally:
        watch.store.config_set("maxmemory", 0)

    assert watch.told() == [(["disk None"], [])]


def test_a_delivery_that_fails_is_shown_and_tried_again(watch: Watch) -> None:
    watch.receiver.script = [reply(503, b"later"), reply(503, b"later"), reply(204)]
    watch.fail()
    watch.look()
    watch.look(minutes=2)
    assert len(watch.receiver.asked) == 1
    assert watch.troubles() == ["webhook: 127.0.0.1 answered 503: later"]

    watch.restart("w1")
    watch.look()
    assert watch.troubles() == ["webhook: 127.0.0.1 answered 503: later (1 waiting)"]
    watch.restart("w1")
    watch.look(minutes=FIRST_MS / MINUTE)
    watch.restart("w1")
    watch.look(minutes=FIRST_MS / MINUTE)
    assert len(watch.receiver.asked) == 2
    watch.restart("w1")
    watch.look(minutes=FIRST_MS / MINUTE)

    assert len(watch.receiver.asked) == 3
    assert not watch.troubles()
    idents = {asked.headers["webhook-id"] for asked in watch.receiver.asked}
    assert len(idents) == 1


def test_a_message_that_never_arrives_is_given_up_and_stays_shown(watch: Watch) -> None:
    watch.receiver.script = [reply(500)]
    watch.fail()
    watch.look()
    for _ in range(3 * GIVE_UP_MS // HOUR):
        watch.restart("w1")
        watch.look(minutes=30)

    board = AlertStore(watch.store, "test").board()
    assert not board.messages
    assert board.channels["webhook"].given_up == 1
    assert len(watch.receiver.asked) <= 2 * GIVE_UP_MS // HOUR + 2
    (shown,) = watch.troubles()
    assert "1 given up" in shown

    AlertStore(watch.store, "cli").tested("webhook", watch.now_ms)
    watch.restart("w1")
    watch.look()
    assert not watch.troubles()


def test_a_channel_that_is_not_configured_any_more_is_forgotten(watch: Watch) -> None:
    watch.receiver.script = [reply(500)]
    watch.fail()
    watch.look()
    watch.look(minutes=2)
    watch.restart("w1")
    del watch.alerts["webhook"]
    watch.alerts["slack"] = {"url": watch.receiver.url, "allow_private": True}
    watch.look()

    assert not AlertStore(watch.store, "test").board().messages


def test_a_failing_channel_that_is_not_configured_any_more_is_shown_no_longer(watch: Watch) -> None:
    watch.receiver.script = [reply(500)]
    watch.fail()
    watch.look()
    watch.look(minutes=2)
    assert len(watch.troubles()) == 1
    del watch.alerts["webhook"]
    watch.alerts["slack"] = {"url": watch.receiver.url, "allow_private": True}

    watch.workers["w1"].prepare(watch.settings())()
    watch.look()

    assert not watch.troubles()


def test_a_site_that_cannot_be_read_hides_no_other_and_ends_nothing(watch: Watch) -> None:
    watch.fail()
    watch.look()
    watch.look(minutes=2)
    watch.store.delete(Keys("demo").dead)
    watch.store.set(Keys("demo").dead, "not a stream")
    watch.fail("other")
    watch.look()
    watch.look(minutes=9)
    watch.look(minutes=9)

    assert watch.told() == [(["failed demo"], []), (["failed other"], [])]
    assert "WRONGTYPE" in " ".join(watch.troubles())


def test_a_damaged_file_record_of_one_site_hides_no_other(watch: Watch) -> None:
    watch.store.hset(Keys("demo").sections, "pages", "1")
    watch.store.hset(Keys("demo").files("pages"), "1", "no record")
    watch.fail("other")
    watch.look()
    watch.look(minutes=2)

    assert watch.told() == [(["failed other"], [])]
    assert watch.troubles()


def test_a_damaged_record_is_left_out(watch: Watch) -> None:
    for key in ("alerts", "alerts:messages", "alerts:channels"):
        watch.store.hset(EVERYWHERE + key, mapping={"x": b"\xff", "failed demo": "[1]", "y z": "7"})
    watch.fail()
    watch.look()
    watch.look(minutes=2)

    assert watch.told() == [(["failed demo"], [])]


def test_a_look_at_hundreds_of_sites_takes_the_round_trips_of_one(watch: Watch) -> None:
    def round_trips() -> int:
        watch.look()
        before = watch.store.info("stats")["total_net_input_bytes"]
        client = watch.store
        reads = client.info("stats")["total_reads_processed"]
        watch.look(minutes=0.1)
        assert client.info("stats")["total_net_input_bytes"] > before
        return int(client.info("stats")["total_reads_processed"]) - int(reads)

    few = round_trips()
    watch.restart("w1")
    watch.sites = [f"site-{n}" for n in range(500)]
    many = round_trips()

    # The server reads one pipeline in pieces of 16 KiB.
    assert few < 20
    assert many - few < len(watch.sites) / 10
