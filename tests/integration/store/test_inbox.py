"""The inbox: accepted once, settled once, whatever happens to the server and to the workers."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.domain.translation_groups import digest_of
from shared.errors import StoreDownError
from shared.events.event import SCHEMA, Event
from shared.store.inbox.inbox import Inbox
from shared.store.keys import GROUP
from tests.integration.conftest import RedisServer
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig, check_keys
from worker.ingest.event_processor import MAX_TRIES
from worker.ingest.inbox_consumer import InboxConsumer


def page(name: object, kind: str = "upsert", **members: Any) -> dict[str, Any]:
    return {"type": kind, "loc": f"{BASE}{name}"} | members


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path)


def events(rig: Rig, *names: object) -> list[Event]:
    return [rig.parse(page(name)) for name in names]


def stored(rig: Rig) -> list[str]:
    found: Any = rig.client.xrange(rig.keys.inbox)
    return [ident.decode() for ident, _ in found]


def raw(rig: Rig, payload: bytes) -> str:
    """Put `payload` into the inbox as if it had been accepted."""
    ident: Any = rig.client.xadd(rig.keys.inbox, {"e": payload})
    return str(ident.decode())


def work(rig: Rig, consumer: str = "w1") -> None:
    with silence():
        rig.pump(consumer).run()


def test_accepted_events_have_the_ids_under_which_they_are_stored(rig: Rig) -> None:
    first = rig.inbox.accept(events(rig, *range(100)))
    second = rig.inbox.accept(events(rig, "one more"))

    assert (first.status, len(first.ids)) == ("accepted", 100)
    assert first.ids + second.ids == stored(rig)
    assert (first.slept, second.slept) == (True, False)


def test_a_delivery_that_is_sent_again_is_accepted_once(rig: Rig) -> None:
    """RELIABILITY T2, T3."""
    first = rig.inbox.accept(events(rig, 1, 2), delivery="m1", digest="d1")

    again = rig.inbox.accept(events(rig, 1, 2), delivery="m1", digest="d1")
    other = rig.inbox.accept(events(rig, 3), delivery="m1", digest="d2")

    assert (again.status, again.ids, again.digest) == ("duplicate", first.ids, "d1")
    assert (other.status, other.digest) == ("conflict", "d1")
    assert stored(rig) == first.ids


def test_a_delivery_is_remembered_after_its_events_were_settled(rig: Rig) -> None:
    first = rig.inbox.accept(events(rig, 1), delivery="m1", digest="d1")
    rig.settle()

    again = rig.inbox.accept(events(rig, 1), delivery="m1", digest="d1")

    assert (again.status, again.ids) == ("duplicate", first.ids)
    assert rig.inbox.waiting() == 0


@pytest.mark.parametrize(("most", "status", "left"), [(5, "accepted", 5), (4, "full", 3)])
def test_a_full_inbox_takes_all_events_of_a_delivery_or_none(
    rig: Rig, most: int, status: str, left: int
) -> None:
    rig.send(*(page(number) for number in range(3)))

    taken = rig.inbox.accept(events(rig, "a", "b"), delivery="m1", digest="d1", most=most)

    assert (taken.status, rig.inbox.waiting()) == (status, left)
    again = rig.inbox.accept(events(rig, "a", "b"), delivery="m1", digest="d1")
    assert again.status == ("duplicate" if status == "accepted" else "accepted")


def test_a_group_that_is_gone_is_made_anew_and_loses_nothing(rig: Rig) -> None:
    rig.do(page(1))
    rig.send(page(2))
    rig.client.xgroup_destroy(rig.keys.inbox, GROUP)

    rig.settle()

    assert sorted(rig.listed()) == [f"{BASE}1", f"{BASE}2"]
    rig.check()


def test_a_script_cache_that_is_emptied_in_the_middle_of_work_holds_nothing_up(rig: Rig) -> None:
    """RELIABILITY F5: NOSCRIPT, before every step of one long-lived worker."""
    pump = rig.pump()
    for number in range(5):
        for step in (lambda n=number: rig.send(page(n)), pump.apply_all, pump.run):
            rig.client.script_flush()
            with silence():
                step()

    assert len(rig.listed()) == 5
    rig.check()


def test_an_event_that_always_fails_is_buried_after_five_tries_and_holds_up_no_other(
    rig: Rig,
) -> None:
    """RELIABILITY F16."""
    rig.send(page("before"))
    (poison,) = rig.send(page("poison") | {"group": "g", "lang": "en"})
    rig.client.set(rig.keys.cluster(digest_of("g")), "of another type")
    rig.send(page("after"))

    for tries in range(1, MAX_TRIES + 1):
        assert rig.inbox.waiting() == (3 if tries == 1 else 1)
        assert not rig.client.exists(rig.keys.dead)
        work(rig)
        assert sorted(rig.listed()) == [f"{BASE}after", f"{BASE}before"]

    assert rig.inbox.waiting() == 0
    ((_, dead),) = rig.client.xrange(rig.keys.dead)
    assert (Event.load(dead[b"e"]).group, dead[b"id"].decode()) == ("g", poison)
    assert int(dead[b"tries"]) == MAX_TRIES
    assert b"WRONGTYPE" in dead[b"error"]
    rig.client.delete(rig.keys.cluster(digest_of("g")))
    rig.check()


def test_events_of_a_newer_schema_wait_for_a_reader_that_knows_them(rig: Rig) -> None:
    """RELIABILITY F21: a rollback drops nothing."""
    event = json.loads(events(rig, "newer")[0].dump())
    ident = raw(rig, json.dumps(event | {"v": SCHEMA + 1, "since": "then"}).encode())
    rig.send(page("known"))

    for _ in range(2 * MAX_TRIES):
        work(rig)

    assert list(rig.listed()) == [f"{BASE}known"]
    assert stored(rig) == [ident]
    assert not rig.client.exists(rig.keys.dead)
    newer = Inbox(rig.client, rig.name)
    assert newer.adopt("w2", ["w1"]) == 1
    assert [received.id for received in newer.read("w2", 10, "0")] == [ident]


def test_the_events_of_a_dead_consumer_are_adopted_and_settled(rig: Rig) -> None:
    rig.send(*(page(number) for number in range(20)))
    assert len(rig.inbox.read("dead", 12)) == 12
    assert rig.inbox.holders() == ["dead"]
    pump = rig.pump("w2")

    assert pump.adopt(["dead"]) == 12
    with silence():
        pump.run()

    assert rig.quiet()
    assert len(rig.listed()) == 20
    assert rig.inbox.holders() == []
    rig.inbox.leave("dead")
    assert rig.inbox.consumers() == ["w2"]
    rig.check()


def test_events_that_are_adopted_while_others_are_settled_are_not_forgotten(rig: Rig) -> None:
    """By the sweep, while a wake-up has the pump at work: in another thread, at any moment."""
    rig.send(*(page(number) for number in range(12)))
    assert len(rig.inbox.read("dead", 12)) == 12
    rig.send({"type": "resync"})
    adopted = []
    pump = InboxConsumer(
        rig.settings, rig.client, rig.name, "w2",
        on_resync=lambda _site: adopted.append(pump.adopt(["dead"])),
    )  # fmt: skip

    for _ in range(2):
        pump.run()

    assert adopted == [12]
    assert rig.inbox.holders() == []
    assert len(rig.listed()) == 12


def test_what_a_consumer_was_given_is_settled_first_after_its_restart(rig: Rig) -> None:
    """RELIABILITY 0, finding 6: fixed names, and their own history is read again."""
    rig.send(*(page(number) for number in range(4)))
    assert len(rig.inbox.read("w1", 3)) == 3
    rig.send(page(0, "delete"))

    work(rig)

    assert rig.quiet()
    assert sorted(rig.listed()) == [f"{BASE}{number}" for number in (1, 2, 3)]
    rig.check()


def test_a_consumer_with_unsettled_events_is_not_forgotten(rig: Rig) -> None:
    rig.send(page(1))
    rig.inbox.read("w1", 1)

    rig.inbox.leave("w1")

    assert rig.inbox.holders() == ["w1"]


def test_every_key_lives_for_ever_by_the_contract_or_has_a_time_to_live(rig: Rig) -> None:
    """After everything that writes keys, and in the middle of it."""
    rig.inbox.accept(events(rig, *range(10)), delivery="m1", digest="d1")
    rig.send({"type": "upsert", "loc": "own", "id": "7"})
    check_keys(rig.client)
    rig.pump().apply_all()
    check_keys(rig.client)
    raw(rig, b"poison")
    rig.send(page(1, "delete"), {"type": "delete", "id": "7"})
    for _ in range(MAX_TRIES):
        work(rig)
    assert rig.lease.take("w9:somebody")
    check_keys(rig.client)
    kinds = {key.decode().split(":", 2)[1] for key in rig.client.scan_iter()}
    assert {"inbox", "seen", "lease", "loc", "id", "tombs", "dead", "recent", "section"} <= kinds


def test_a_server_that_is_killed_again_and_again_loses_nothing(
    fragile_redis: RedisServer, tmp_path: Path
) -> None:
    """RELIABILITY F5: inbox, history of a consumer, state and files go on as they were."""
    chance, listed = random.Random(1), set[str]()
    with fragile_redis.client() as client:
        rig = Rig(client, tmp_path, shard_urls=5)
        for round_ in range(6):
            for number in range(10):
                name, kind = chance.randrange(30), chance.choice(("upsert", "upsert", "delete"))
                accepted = rig.inbox.accept(
                    [rig.parse(page(name, kind))], delivery=f"{round_}-{number}", digest="d"
                )
                assert accepted.status == "accepted"
                (listed.add if kind == "upsert" else listed.discard)(f"{BASE}{name}")
            if round_ % 3 == 1:
                rig.inbox.read("w1", 5)
            elif round_ % 3 == 2:
                with silence():
                    rig.pump().apply_all()
            fragile_redis.kill()
            with pytest.raises(StoreDownError):
                rig.inbox.accept(events(rig, "nobody hears"))
            fragile_redis.start()
            again = rig.inbox.accept(events(rig, name), delivery=f"{round_}-9", digest="d")
            assert again.status == "duplicate"
            if round_ % 2:
                rig.settle()
                assert set(rig.listed()) == listed
                rig.check()


def test_a_server_that_hangs_is_an_error_and_not_the_end_of_a_worker(
    fragile_redis: RedisServer, tmp_path: Path
) -> None:
    with redis.Redis.from_url(fragile_redis.url, socket_timeout=0.5) as client:
        rig = Rig(client, tmp_path)
        rig.do(page(1))
        pump = rig.pump()
        rig.send(page(2))
        fragile_redis.send(signal.SIGSTOP)

        with pytest.raises(StoreDownError):
            pump.run()

        fragile_redis.send(signal.SIGCONT)
        rig.settle()
        assert sorted(rig.listed()) == [f"{BASE}1", f"{BASE}2"]
        rig.check()
