"""What waits for an engine is told once in a while, within its budget, and never forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from werkzeug.test import Client

from deploy.web.static_files import StaticFiles
from shared.store.notify.delivery_lease import DeliveryLeaseLostError, delivery_lease
from shared.store.notify.notification_queue import MOST_DEAD, MOST_RECORDS, RequestRecord
from tests.integration.conftest import Wait
from tests.integration.engines import Behaviour, Engine, engine, hang, reply
from tests.integration.notified import KEY, MINUTE, TABLES, Desk
from tests.integration.rig import BASE, check_keys
from worker.http.exchange import AllowedHosts, OutboundAnswer, OutboundRequest
from worker.notify.backoff import MOST_REFUSALS, MOST_TRIES
from worker.notify.dispatcher import Dispatcher
from worker.notify.engine import AnswerVerdict

A, B = BASE + "a", BASE + "b"
DAY = 24 * 60 * MINUTE
Open = Callable[..., Desk]


@pytest.fixture
def server() -> Iterator[Engine]:
    with engine() as server:
        yield server


@pytest.fixture
def opened(store: redis.Redis, tmp_path: Path, server: Engine) -> Open:
    """A desk that tells IndexNow, at `server`."""

    def make(*script: Behaviour, more: dict[str, Any] | None = None, **table: Any) -> Desk:
        server.script = list(script) or [reply(200)]
        tables = {"indexnow": TABLES["indexnow"](server.url) | table}
        return Desk(store, tmp_path / "public", tables, **(more or {}))

    return make


def told(server: Engine) -> list[list[str]]:
    return [sorted(asked.json()["urlList"]) for asked in server.asked]


def test_a_url_is_told_again_only_after_a_while(opened: Open, server: Engine) -> None:
    """PROTOCOL U7: some minutes between repeats of a URL."""
    desk = opened()
    desk.tell(A)
    desk.now += 9 * MINUTE
    desk.enqueue(A, B)
    desk.look()
    assert told(server) == [[A], [B]]

    desk.now += MINUTE
    desk.look()

    assert told(server) == [[A], [B], [A]]


def test_repeats_in_between_are_one(opened: Open, server: Engine) -> None:
    desk = opened()
    desk.tell(A)
    for _ in range(5):
        desk.now += MINUTE
        desk.enqueue(A)
        desk.look()
    desk.now += 10 * MINUTE
    desk.look()

    assert told(server) == [[A], [A]]


def test_what_is_told_of_sitemaps_is_told_once_for_all_pages(
    store: redis.Redis, tmp_path: Path, server: Engine
) -> None:
    desk = Desk(store, tmp_path / "public", {"crawler": TABLES["crawler"](server.url)})
    desk.publish()
    desk.tell(*(f"{BASE}{n}" for n in range(200)))
    desk.now += 9 * MINUTE
    desk.enqueue(*(f"{BASE}{n}" for n in range(300)))
    desk.look()
    assert (len(server.asked), desk.waiting("crawler")) == (1, 300)

    desk.now += MINUTE
    desk.look()

    assert (len(server.asked), desk.waiting("crawler")) == (2, 0)


def test_the_budget_of_a_day_is_kept(opened: Open, server: Engine) -> None:
    desk = opened(daily=3)
    desk.tell(*(f"{BASE}{n}" for n in range(5)))
    assert [len(urls) for urls in told(server)] == [3]
    assert desk.notices.figures("indexnow", desk.now) == {
        "waiting": 2, "due": 2, "next": desk.now, "spent_today": 3,
    }  # fmt: skip

    desk.now += DAY
    desk.look()

    assert [len(urls) for urls in told(server)] == [3, 2]


def test_a_change_while_its_notice_is_under_way_is_told_again(opened: Open, server: Engine) -> None:
    desk = opened()
    ok = reply(200)

    def meanwhile(*at: Any) -> None:
        desk.enqueue(A)
        ok(*at)

    server.script = [meanwhile, ok]
    desk.tell(A)
    assert told(server) == [[A]]

    desk.now += 10 * MINUTE
    desk.look()

    assert told(server) == [[A], [A]]


def test_the_first_page_of_a_new_month_is_told_by_a_worker_that_runs(
    opened: Open, server: Engine
) -> None:
    """Another thread, or another process, gave the month its number."""
    split = {"sections": {"posts": {"split": "month"}}}
    desk = opened(more=split)
    page = {"type": "upsert", "section": "posts"}
    desk.change(page | {"loc": "a", "published": "2025-11-03"})
    desk.tell(A)

    desk.change(page | {"loc": "b", "published": "2025-12-01"})
    desk.tell(B)

    assert told(server) == [[A], [B]]
    assert desk.waiting("indexnow") == 0


class KilledError(BaseException):
    """As a kill between the request and what is written of it."""


def test_a_worker_that_dies_after_the_request_sends_it_again(opened: Open, server: Engine) -> None:
    """At least once."""
    desk = opened()
    dying = desk.another("w1")

    def die(request: OutboundRequest, allowed: AllowedHosts) -> OutboundAnswer:
        desk.telling.engine_apis["indexnow"]._outbound(request, allowed)
        raise KilledError

    dying.engine_apis["indexnow"]._outbound = die
    desk.enqueue(A)
    with pytest.raises(KilledError):
        dying.notify("indexnow")
    assert desk.waiting("indexnow") == 1

    desk.look()

    assert told(server) == [[A], [A]]
    assert desk.waiting("indexnow") == 0


def test_two_workers_do_not_tell_the_same_engine_at_once(
    opened: Open, server: Engine, until: Wait
) -> None:
    desk, go_on = opened(), threading.Event()
    ok = reply(200)

    def slow(*at: Any) -> None:
        go_on.wait(30)
        ok(*at)

    server.script = [slow, ok]
    desk.enqueue(A)
    first = threading.Thread(target=desk.another("w1", seconds=30).notify, args=("indexnow",))
    first.start()
    try:
        until(lambda: server.asked, "the first request")
        desk.enqueue(A, B)
        other = desk.another("w2")
        assert other.notify("indexnow") is False
        assert len(server.asked) == 1
    finally:
        go_on.set()
        first.join()

    desk.look()

    assert told(server) == [[A], [B]]


def test_who_lost_its_turn_writes_nothing(opened: Open) -> None:
    """A worker that was stopped for longer than its lease (RELIABILITY F14)."""
    desk = opened()
    client, keys = desk.rig.client, desk.rig.keys
    desk.enqueue(A)
    with delivery_lease(client, "demo", "indexnow", "w1") as late:
        assert late is not None
        assert late.take(desk.now, 10, 0, whole=False) == [A]
        client.delete(keys.notify_lease("indexnow"))
        with delivery_lease(client, "demo", "indexnow", "w2") as mine:
            assert mine is not None
            assert mine.take(desk.now, 10, 0, whole=False) == [A]
            for write in (
                late.keep,
                lambda: late.complete([A], desk.now, 0, whole=False),
                lambda: late.postpone([A], desk.now),
                lambda: late.give_up([A], desk.now, "why"),
            ):
                with pytest.raises(DeliveryLeaseLostError):
                    write()
            assert desk.waiting("indexnow") == 1
            mine.complete([A], desk.now, 0, whole=False)

    assert (desk.waiting("indexnow"), desk.dead()) == (0, {})


def test_a_turn_that_nobody_ended_runs_out(opened: Open) -> None:
    desk = opened()
    with delivery_lease(desk.rig.client, "demo", "indexnow", "w1"):
        assert 0 < desk.rig.client.pttl(desk.rig.keys.notify_lease("indexnow")) <= 60_000  # type: ignore[operator]


def test_an_engine_that_fails_is_asked_ever_more_rarely_and_then_given_up(
    opened: Open, server: Engine
) -> None:
    """Every moment at which it is asked, in minutes from the first."""
    desk = opened(reply(503))
    began, asked = desk.now, list[int]()
    desk.enqueue(A)
    for _ in range(3 * 24 * 60):
        before = len(server.asked)
        desk.look()
        asked += [(desk.now - began) // MINUTE] * (len(server.asked) - before)
        if not desk.waiting("indexnow"):
            break
        breaker = desk.breaker("indexnow")
        assert breaker is not None
        desk.now = breaker.until

    assert asked == [0, 1, 3, 7, 15, 31, 63, 127, 255, 495]
    assert len(asked) == MOST_TRIES
    assert desk.dead() == {"indexnow": [A]}
    (dead,) = desk.notices.dead()
    assert "503" in dead.why
    check_keys(desk.rig.client)


def test_what_comes_while_an_engine_rests_waits_for_its_end(opened: Open, server: Engine) -> None:
    desk = opened(reply(429, retry_after="600"), reply(200))
    desk.tell(A)
    desk.enqueue(B)
    desk.now += 10 * MINUTE - 1
    desk.look()
    assert told(server) == [[A]]

    desk.now += 1
    desk.look()

    assert told(server) == [[A], [A, B]]
    assert desk.breaker("indexnow") is None


def test_the_next_endpoint_takes_over_at_once(opened: Open, server: Engine) -> None:
    """PROTOCOL U6: they share what they are told."""
    with engine(reply(500)) as broken:
        desk = opened(endpoints=[f"{broken.url}/indexnow", f"{server.url}/indexnow"])
        desk.tell(A)

        assert (told(broken), told(server)) == ([[A]], [[A]])
        desk.now += 10 * MINUTE
        desk.tell(A)
        assert (len(broken.asked), len(server.asked)) == (2, 2)


def test_what_is_refused_again_and_again_pauses_the_engine(opened: Open, server: Engine) -> None:
    desk = opened(reply(400))
    for n in range(MOST_REFUSALS):
        breaker = desk.breaker("indexnow")
        assert breaker is None or not breaker.paused
        desk.tell(f"{BASE}{n}")

    desk.enqueue(A)
    desk.look()

    assert len(server.asked) == MOST_REFUSALS
    assert desk.waiting("indexnow") == 1


def test_a_key_that_is_served_ends_no_pause_that_is_about_something_else(
    opened: Open, server: Engine
) -> None:
    with engine(reply(200, KEY.encode())) as web:
        desk = opened(reply(400), more={"base_url": web.url})
        for n in range(MOST_REFUSALS):
            desk.tell(f"{BASE}{n}")
        desk.enqueue(A)
        desk.now += DAY
        desk.look()

        assert (len(server.asked), web.asked) == (MOST_REFUSALS, [])


def test_tries_are_counted_anew_after_a_success(opened: Open) -> None:
    desk = opened(reply(503), reply(200))
    tries = f"{desk.rig.keys.notify('indexnow')}:tries"
    desk.tell(A)
    assert desk.rig.client.hgetall(tries) == {A.encode(): b"1"}

    desk.now += MINUTE
    desk.look()

    assert desk.rig.client.exists(tries) == 0


def test_who_lost_its_turn_sends_nothing_more(
    store: redis.Redis, tmp_path: Path, server: Engine
) -> None:
    """Nor does it spend what it does not send: a hub gets a request for each feed."""
    options = {"feed": True, "hub": f"{server.url}/hub"}
    desk = Desk(store, tmp_path / "public", {"websub": {}}, **options)
    ok = reply(204)

    def taken_over(*at: Any) -> None:
        store.set(desk.rig.keys.notify_lease("websub"), "w2:token")
        ok(*at)

    server.script = [taken_over, ok]
    desk.enqueue(A)
    with pytest.raises(DeliveryLeaseLostError):
        desk.telling.notify("websub")

    assert len(server.asked) == desk.notices.spent("websub", desk.now) == 1
    assert store.get(desk.rig.keys.notify_lease("websub")) == b"w2:token"
    assert desk.waiting("websub") == 1


def test_a_replay_tells_what_was_given_up_and_ends_the_pause(opened: Open, server: Engine) -> None:
    desk = opened(reply(422), reply(403), reply(200))
    desk.tell(A)
    desk.tell(B)
    desk.enqueue(BASE + "c")
    desk.look()
    assert desk.dead() == {"indexnow": [A, B]}

    assert desk.notices.replay(["indexnow"], desk.now) == 2
    desk.look()

    assert told(server)[2:] == [[A, B, BASE + "c"]]
    assert (desk.dead(), desk.waiting("indexnow"), desk.breaker("indexnow")) == ({}, 0, None)


def test_a_replay_leaves_other_engines_letters(opened: Open) -> None:
    desk = opened(reply(422))
    desk.tell(A)

    assert desk.notices.replay(["bing"], desk.now) == 0
    assert desk.dead() == {"indexnow": [A]}


def test_many_dead_letters_are_kept_in_order_and_bounded(opened: Open) -> None:
    desk = opened()
    client, locs = desk.rig.client, [f"{BASE}{n}" for n in range(2_500)]
    with delivery_lease(client, "demo", "indexnow", "w1") as mine:
        assert mine is not None
        mine.give_up(locs, desk.now, "why")
        assert desk.dead() == {"indexnow": locs}
        for n in range(MOST_DEAD):
            mine.give_up([str(n)], desk.now, "why")

    assert client.xlen(desk.rig.keys.notice_dead) == MOST_DEAD
    assert desk.dead() == {"indexnow": [str(n) for n in range(MOST_DEAD)]}


def test_any_number_of_locs_can_be_queued_from_an_iterator(opened: Open) -> None:
    desk = opened()

    assert desk.notices.enqueue(["indexnow", "bing"], map(str, range(2_500)), 5) == 5_000
    assert desk.notices.enqueue(["indexnow"], map(str, range(2_501)), 9) == 1
    assert desk.notices.figures("indexnow", 7) == {
        "waiting": 2_501, "due": 2_500, "next": 5, "spent_today": 0,
    }  # fmt: skip


def test_a_paused_site_tells_nobody(opened: Open, server: Engine) -> None:
    desk = opened()
    desk.rig.client.hset(desk.rig.keys.paused, "notify", "since")
    desk.enqueue(A)
    desk.look()
    assert server.asked == []

    desk.rig.client.hdel(desk.rig.keys.paused, "notify")
    desk.look()

    assert told(server) == [[A]]


def test_a_pause_for_the_key_ends_when_its_file_is_served(opened: Open, server: Engine) -> None:
    """PROTOCOL U5: 403 is the key. Nothing is sent until it can be seen."""
    with engine(reply(404), reply(200, b"another"), reply(200, f"{KEY}\n".encode())) as web:
        desk = opened(reply(403), reply(200), more={"base_url": web.url})
        desk.tell(A)
        desk.enqueue(B)
        desk.look()
        assert (len(server.asked), web.asked) == (1, [])

        moments = []
        while len(server.asked) < 2:
            desk.now += MINUTE
            desk.look()
            moments.append(len(web.asked))

        assert moments == [1, 1, 2, 2, 2, 2, 3]
        assert {asked.target for asked in web.asked} == {f"/{KEY}.txt"}
    assert told(server) == [[A], [B]]
    assert desk.dead() == {"indexnow": [A]}
    assert desk.breaker("indexnow") is None


def test_a_key_that_is_not_served_is_said_though_the_engine_took_all(opened: Open) -> None:
    """PROTOCOL U5: 202 is treated as success, and watched."""
    with engine(reply(404)) as web:
        desk = opened(reply(202), more={"base_url": web.url})
        desk.tell(A)

    seen, taken = desk.notices.records(2)
    assert (taken.outcome, seen.outcome) == (AnswerVerdict.PENDING, AnswerVerdict.FORBIDDEN)
    assert f"{KEY}.txt answers 404" in seen.detail
    assert desk.waiting("indexnow") == 0


def test_a_file_of_somebody_else_is_no_key_and_stays(opened: Open, server: Engine) -> None:
    desk = opened()
    path = desk.rig.root / f"{KEY}.txt"
    path.write_text("mine")

    record = desk.tell(A)

    assert (record.outcome, path.read_text(), server.asked) == (AnswerVerdict.HELD, "mine", [])
    assert "was not written by sitemapd" in record.detail
    path.unlink()
    desk.now += 10 * MINUTE
    desk.look()
    assert (told(server), path.read_text()) == ([[A]], KEY)


def test_the_key_is_served_as_plain_text(opened: Open) -> None:
    """RELIABILITY T31."""
    desk = opened()
    desk.tell(A)

    found = Client(StaticFiles({desk.rig.name: desk.rig.site})).get(
        f"/{KEY}.txt", headers={"Host": "www.example.com"}
    )

    assert (found.status_code, found.data) == (200, KEY.encode())
    assert found.content_type == "text/plain; charset=utf-8"
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    found.close()


def test_a_key_that_is_served_elsewhere_is_not_written(opened: Open, server: Engine) -> None:
    desk = opened(key_location=BASE + "keys.txt")

    desk.tell(A)

    assert server.asked[0].json()["keyLocation"] == BASE + "keys.txt"
    assert not (desk.rig.root / f"{KEY}.txt").exists()


def test_records_are_bounded_and_the_newest_come_first(opened: Open) -> None:
    desk = opened()
    record = RequestRecord(1, "indexnow", "https://x.example", 1, (A,), 200, "done", 5, "")
    for n in range(MOST_RECORDS + 300):
        desk.notices.record(record._replace(at=n))

    records = desk.notices.records()
    assert records[0] == record._replace(at=MOST_RECORDS + 299)
    assert desk.rig.client.xlen(desk.rig.keys.notices) <= MOST_RECORDS + 100  # type: ignore[operator]


def test_every_key_is_permanent_or_runs_out(opened: Open) -> None:
    desk = opened(reply(200), reply(403))
    desk.tell(A)
    desk.tell(B)

    check_keys(desk.rig.client)
    for key in ("told:indexnow", "spent:indexnow:20261121"):
        assert desk.rig.client.ttl(desk.rig.keys.prefix + key) > 0  # type: ignore[operator]


def test_no_engine_hears_of_another_sites_pages(
    store: redis.Redis, tmp_path: Path, opened: Open, server: Engine
) -> None:
    desk = opened()
    other = Desk(
        store, tmp_path / "other", {"indexnow": TABLES["indexnow"](server.url)}, name="other"
    )
    other.enqueue(B)

    desk.look()

    assert server.asked == []
    assert other.waiting("indexnow") == 1


def test_an_engine_that_hangs_uses_up_one_try(opened: Open, server: Engine) -> None:
    desk = opened(hang)
    quick: Dispatcher = desk.another("w1", seconds=0.2)
    desk.enqueue(A)
    desk.look(quick)
    desk.look(quick)

    assert len(server.asked) == 1
