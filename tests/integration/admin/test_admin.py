"""Queues, failed events, replays and timelines, on a real store with real workers."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import redis
from flask.testing import FlaskClient

from shared.admin.dead_letters import DeadLetterActions, DeadLetterFilter
from shared.admin.events import EventActions, EventFilter, stored_lines
from shared.admin.queues import QueueActions
from shared.admin.timeline import Timeline, Timelines
from shared.errors import InvalidError, StoreError
from shared.store.operations.dead_letters import DeadLetters
from shared.store.operations.queues import EVENTS, INTAKE, NOTIFY, PUBLISH
from tests.integration.conftest import TOKEN, Signer
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", notify={"bing": {"key": "0123456789"}})


@pytest.fixture
def queues(rig: Rig) -> QueueActions:
    return QueueActions(rig.client, rig.name, ["bing"])


def bury(rig: Rig, error: str, *items: dict[str, Any], quiet: bool = False) -> list[str]:
    """Events that were given up: their ids in the inbox."""
    absolute = [item | {"loc": BASE + item["loc"]} for item in items]
    ids = rig.inbox.accept([rig.parse(item) for item in absolute], quiet=quiet).ids
    rig.inbox.read("w1", len(ids))
    for ident in ids:
        assert rig.inbox.dead_letter(ident, error, 5)
    return ids


def show(rig: Rig, asked: str) -> Timeline:
    return Timelines(rig.client, rig.name, rig.site).show(asked)


def words(timeline: Timeline) -> list[str]:
    return [step.step for step in timeline.steps]


def test_events_that_are_paused_wait_over_a_restart_and_go_on(
    rig: Rig, queues: QueueActions
) -> None:
    queues.pause(EVENTS, "me")
    ids = rig.send(upsert("a"))
    with silence():
        rig.pump().run()
        rig.pump("a new worker").run()
    assert rig.inbox.waiting() == 1
    assert show(rig, ids[0]).state == "waiting"
    assert "paused by me" in show(rig, ids[0]).steps[-1].what

    queues.resume(EVENTS)
    rig.settle()

    assert set(rig.listed()) == {f"{BASE}a"}
    rig.check()


def test_publishing_that_is_paused_lets_events_be_decided_and_files_as_they_are(
    rig: Rig, queues: QueueActions
) -> None:
    rig.do(upsert("a"))
    before = rig.files()
    queues.pause(PUBLISH, "me")
    (ident,) = rig.send(upsert("b"))
    with silence():
        rig.pump().run()
        rig.pump("a new worker").run()
    assert (rig.inbox.waiting(), rig.files()) == (0, before)
    assert show(rig, ident).state == "applied"
    assert "paused by me" in show(rig, ident).steps[-1].what
    rows = {row.queue: row for row in queues.rows()}
    assert (rows[PUBLISH].waiting, rows[PUBLISH].paused.by) == (1, "me")  # type: ignore[union-attr]

    assert queues.resume(PUBLISH).number == 1
    rig.settle()

    assert set(rig.listed()) == {f"{BASE}a", f"{BASE}b"}
    assert show(rig, ident).state == "published"


def test_what_is_paused_twice_stays_with_who_was_first(queues: QueueActions) -> None:
    assert queues.pause(EVENTS, "first").number == 1
    again = queues.pause(EVENTS, "second")

    assert (again.number, again.said) == (0, "was paused already")
    assert queues.rows()[1].paused.by == "first"  # type: ignore[union-attr]
    assert queues.resume(EVENTS).number == 1
    assert queues.resume(EVENTS).said == "was not paused"
    with pytest.raises(InvalidError, match="events, publish, notify, intake"):
        queues.pause("everything", "me")


def test_the_rows_say_what_waits_how_long_and_how_fast_it_goes(
    rig: Rig, queues: QueueActions
) -> None:
    now_ms = queues.waiting().now_ms
    for minutes_ago in (1, 2):
        pulse = rig.keys.pulse(now_ms // 60_000 - minutes_ago)
        rig.client.hset(pulse, mapping={"accepted": 30, "changed": 5, "unchanged": 5})
        rig.client.hset(pulse, mapping={"publishes": 1})
        rig.client.expire(pulse, 600)
    rig.send(upsert("a"), upsert("b"))
    rig.inbox.read("w1", 1)
    rig.client.zadd("{demo}:notify:bing", {"a": now_ms - 60_000, "b": now_ms})
    rig.client.zadd("{demo}:notify:bing:sending", {"c": now_ms})

    intake, events, publish, notify = queues.rows()

    assert [row.queue for row in (intake, events, publish, notify)] == [
        INTAKE, EVENTS, PUBLISH, NOTIFY,
    ]  # fmt: skip
    assert (events.waiting, events.in_flight) == (2, 1)
    assert events.oldest_ms is not None
    assert 0 <= events.oldest_ms < 60_000
    assert (intake.rate, events.rate, publish.rate) == (12.0, 4.0, 0.4)
    assert (publish.waiting, publish.oldest_ms) == (0, None)
    assert (notify.waiting, notify.in_flight, notify.rate) == (3, 1, None)
    assert notify.oldest_ms is not None
    assert notify.oldest_ms >= 60_000


def test_the_intake_that_is_closed_answers_503_for_events_and_hooks(
    web: FlaskClient, store: redis.Redis, signed: Signer
) -> None:
    queues = QueueActions(store, "demo")
    body = json.dumps(upsert(f"{BASE}a")).encode()
    queues.drain("me")
    refused = web.post("/v1/sites/demo/events", data=body, headers=signed(body))
    hooked = hook(web)

    for answer in (refused, hooked):
        assert (answer.status_code, answer.json["code"]) == (503, "closed")
        assert int(answer.headers["Retry-After"]) == 60
    assert queues.waiting().events == 0
    queues.resume(INTAKE)
    assert web.post("/v1/sites/demo/events", data=body, headers=signed(body)).status_code == 202
    assert hook(web).status_code == 200


def hook(web: FlaskClient) -> Any:
    """A delivery of Wagtail, with the site's own token."""
    body = json.dumps([upsert(f"{BASE}a")]).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    return web.post("/v1/sites/demo/hooks/wagtail", data=body, headers=headers)


def test_a_drain_that_could_never_end_is_refused_with_what_to_do(queues: QueueActions) -> None:
    queues.pause(PUBLISH, "me")

    with pytest.raises(InvalidError, match="sitemapd queue resume publish --site demo"):
        queues.drain("me")
    assert INTAKE not in {row.queue for row in queues.rows() if row.paused}


def test_a_purge_beside_a_worker_loses_nothing(
    rig: Rig, queues: QueueActions, store: redis.Redis
) -> None:
    """Each event is in the files, or kept, or both if it was just being decided."""
    rig.send(*(upsert(f"p/{n}") for n in range(400)))
    stop = threading.Event()

    def work() -> None:
        pump = rig.pump()
        while not stop.is_set():
            pump.run(0.01)

    def send() -> None:
        for n in range(400, 900, 10):
            rig.send(*(upsert(f"p/{n + step}") for step in range(10)))

    threads = [threading.Thread(target=each) for each in (work, send)]
    with silence():
        for thread in threads:
            thread.start()
        names = []
        while threads[1].is_alive():
            names.append(queues.purge().subject)
        threads[1].join()
        names.append(queues.purge().subject)
        stop.set()
        threads[0].join()
        rig.settle()

    # Purges of one millisecond share a name.
    kept = [json.loads(line)["loc"] for name in {*names} if name for line in queues.kept(name)]
    assert set(kept) | set(rig.listed()) == {f"{BASE}p/{n}" for n in range(900)}
    assert len(kept) == len(set(kept))
    assert sum(queues.purges().values()) == len(kept)
    assert 0 < store.ttl(rig.keys.purged(next(filter(None, names)))) <= 7 * 24 * 3600
    rig.check()


def test_what_was_purged_is_saved_and_can_be_put_back_as_it_was_sent(
    rig: Rig, queues: QueueActions
) -> None:
    rig.do(upsert("a", version=5))
    rig.send(upsert("a", version=4, lastmod="2026-01-01"), upsert("b", version=1))
    saved: list[bytes] = []
    outcome = queues.purge(saved.extend)
    assert (outcome.number, rig.inbox.waiting()) == (2, 0)
    assert list(queues.kept(outcome.subject)) == saved
    with pytest.raises(InvalidError, match=f"kept are: {outcome.subject}"):
        queues.kept("7")

    lines = [line + b"\n" for line in saved] + [b"\n"]
    events = EventActions(rig.client, rig.name)
    again = events.replay(stored_lines(lines), ["--file=x"], newest=False)
    rig.settle()

    assert again.number == 2
    assert rig.listed() == {f"{BASE}a": None, f"{BASE}b": None}, "the older one still is older"


def test_failed_events_are_grouped_by_error_and_tried_again_by_any_choice(rig: Rig) -> None:
    bury(rig, "KeyError: a", *(upsert(f"a/{n}") for n in range(4)))
    bury(rig, "OSError: b", upsert("b"))
    dead = DeadLetterActions(rig.client, rig.name)
    first, second = dead.groups()
    assert (first.error, first.events, first.examples[0]) == ("KeyError: a", 4, f"{BASE}a/3")
    assert (second.error, second.events) == ("OSError: b", 1)

    one = next(DeadLetters(rig.client, rig.name).letters(error="KeyError: a"))
    assert dead.show(one.id).payload == one.payload
    assert dead.retry(DeadLetterFilter(ids=[one.id])).number == 1
    assert dead.retry(DeadLetterFilter(error="OSError: b")).number == 1
    outcome = dead.retry(DeadLetterFilter(everything=True))
    assert (outcome.number, len(outcome.ids)) == (3, 3)
    assert outcome.command == "sitemapd dead retry --all --site demo"
    rig.settle()

    assert len(rig.listed()) == 5
    assert dead.groups() == []
    for choice in (
        DeadLetterFilter(ids=["1-0"]),
        DeadLetterFilter(ids=["x"]),
        DeadLetterFilter(ids=["1" * 30 + "-0"]),
        DeadLetterFilter(),
        DeadLetterFilter(["1-0"], "e"),
    ):
        with pytest.raises(InvalidError):
            dead.retry(choice)


def test_what_is_discarded_is_saved_first_and_the_others_stay(rig: Rig) -> None:
    bury(rig, "KeyError: a", upsert("a"))
    bury(rig, "OSError: b", upsert("b"))
    dead = DeadLetterActions(rig.client, rig.name)
    saved: list[bytes] = []

    def fails(_events: object) -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        dead.discard(DeadLetterFilter(everything=True), fails)
    assert sum(group.events for group in dead.groups()) == 2

    assert dead.discard(DeadLetterFilter(error="KeyError: a"), saved.extend).number == 1

    assert [json.loads(line)["loc"] for line in saved] == [f"{BASE}a"]
    assert [group.error for group in dead.groups()] == ["OSError: b"]


def test_a_retry_keeps_that_engines_are_not_told(rig: Rig) -> None:
    bury(rig, "E", upsert("quiet"), quiet=True)
    bury(rig, "E", upsert("loud"))
    DeadLetterActions(rig.client, rig.name).retry(DeadLetterFilter(everything=True))

    found = {json.loads(r.payload)["loc"]: r.quiet for r in rig.inbox.read("w1", 10)}
    assert found == {f"{BASE}quiet": True, f"{BASE}loud": False}


def test_what_came_lately_is_found_by_page_reason_kind_and_time(rig: Rig) -> None:
    rig.do(upsert("blog/a"))
    rig.do(upsert("blog/b"), upsert("c"))
    rig.do(upsert("c"))
    events = EventActions(rig.client, rig.name)
    everything = list(events.latest(EventFilter()))

    def found(**wanted: Any) -> list[str]:
        return [past.subject.removeprefix(BASE) for past in events.latest(EventFilter(**wanted))]

    assert found() == ["c", "c", "blog/b", "blog/a"]
    assert found(url=f"{BASE}blog/*") == ["blog/b", "blog/a"]
    assert found(url=f"{BASE}blog/a") == ["blog/a"]
    assert found(reason="same") == ["c"]
    assert found(kind="refused") == []
    assert found(since_ms=everything[-1].at_ms + 1) in (["c", "c", "blog/b"], ["c"])
    assert [s.id for s in events.matching(EventFilter(url=f"{BASE}blog/*"))] == [
        past.event for past in reversed(everything) if "blog" in past.subject
    ]


def test_a_replay_counts_as_the_newest_whatever_is_known_by_now(rig: Rig) -> None:
    (old,) = rig.send(upsert("a", version=1, lastmod="2026-01-01"))
    rig.settle()
    rig.do(upsert("a", version=2, lastmod="2026-01-02"))
    events = EventActions(rig.client, rig.name)
    stored = events.stored([old])
    assert events.replay(stored, [old], newest=False).number == 1
    rig.settle()
    assert rig.listed() == {f"{BASE}a": "2026-01-02"}

    outcome = events.replay(stored, [old], newest=True)
    rig.settle()

    assert rig.listed() == {f"{BASE}a": "2026-01-01"}
    assert outcome.command == f"sitemapd event replay {old} --site demo"


def test_matching_events_end_as_their_senders_versions_say_in_whatever_order_they_came(
    rig: Rig,
) -> None:
    rig.do(upsert("a", version=7, lastmod="2026-01-07"))
    rig.do(upsert("a", version=3, lastmod="2026-01-03"))
    rig.do({"type": "delete", "loc": "a"})
    events = EventActions(rig.client, rig.name)
    upserts = [s for s in events.matching(EventFilter(url=f"{BASE}a")) if b"upsert" in s.payload]

    assert events.replay(upserts, ["--matching"], newest=True).number == 2
    rig.settle()

    assert rig.listed() == {f"{BASE}a": "2026-01-07"}


def test_a_replay_that_is_not_possible_says_what_to_do(rig: Rig, queues: QueueActions) -> None:
    events = EventActions(rig.client, rig.name, inbox_limit=1)
    with pytest.raises(InvalidError, match="no longer kept: send it again from its source"):
        events.stored(["1-0"])
    for asked in ("x", "99999999999999999999999-0", "1-"):
        with pytest.raises(InvalidError, match="no longer kept"):
            events.stored([asked])
    with pytest.raises(InvalidError, match=r"\[1\].line: stored event cannot be read"):
        events.replay(stored_lines([b'{"v":1,"type":"delete","id":"1"}', b"x"]), [], newest=False)
    two = stored_lines([b'{"v":1,"type":"delete","id":"1"}'] * 2)
    with pytest.raises(StoreError, match="0 of 2 accepted"):
        events.replay(two, [], newest=False)
    queues.pause(INTAKE, "me")
    with pytest.raises(InvalidError, match="sitemapd queue resume intake"):
        events.replay(two, [], newest=False)
    assert rig.inbox.waiting() == 0


def test_a_published_event_is_followed_to_its_file_with_the_lines_it_changed(rig: Rig) -> None:
    rig.do(upsert("a"))
    (ident,) = rig.send(upsert("a", lastmod="2026-01-02"))
    rig.settle()
    rig.do(upsert("a", lastmod="2026-01-03"))

    found = show(rig, ident)

    assert (found.state, found.subject) == ("published", f"{BASE}a")
    assert words(found) == ["accepted", "decided", "applied", "published", "to be told"]
    *steps, to_be_told = found.steps
    assert [step.what for step in steps] == ["", "changed", "pages/1", "pages-1.xml"]
    assert to_be_told.what == "bing"
    after = [step.after_ms for step in steps]
    assert after == sorted(after)  # type: ignore[type-var]
    (line,) = found.lines
    assert line.before == f"<url><loc>{BASE}a</loc></url>\n".encode()
    assert b"2026-01-02" in (line.after or b"")
    assert found.event["lastmod"] == "2026-01-02"
    assert show(rig, f"{BASE}a").event["lastmod"] == "2026-01-03", "of a page: the last"


def test_the_lines_of_an_event_are_those_of_its_page_among_all_that_a_publish_changed(
    rig: Rig,
) -> None:
    rig = Rig(rig.client, rig.root, shard_urls=1)
    rig.do(*(upsert(page) for page in "abc"))
    ids = rig.send(*(upsert(page, lastmod="2026-01-02") for page in "abc"))
    rig.settle()

    found = [show(rig, ident) for ident in ids]

    assert [[line.loc for line in each.lines] for each in found] == [
        [f"{BASE}{page}"] for page in "abc"
    ]  # fmt: skip
    assert [each.steps[-1].what for each in found] == [f"pages-{n}.xml" for n in (1, 2, 3)]


def test_every_other_state_of_an_event_is_said(rig: Rig) -> None:
    rig.do(upsert("a"))
    (same,) = rig.send(upsert("a"))
    rig.settle()
    assert (show(rig, same).state, words(show(rig, same))) == ("unchanged", ["accepted", "decided"])

    (waiting,) = rig.send(upsert("b"))
    assert show(rig, waiting).state == "waiting"
    rig.inbox.read("w1", 1)
    assert show(rig, waiting).state == "in flight"
    assert "with w1" in show(rig, waiting).steps[-1].what
    assert show(rig, f"{BASE}b").ident == waiting
    rig.inbox.read("w1", 1, "0")
    assert "failed 1 times before" in show(rig, waiting).steps[-1].what
    rig.settle()

    (dead,) = bury(rig, "KeyError: x", upsert("dead"))
    assert show(rig, dead).state == "dead"
    assert "KeyError: x (tried 5 times)" in show(rig, dead).steps[-1].what
    assert show(rig, f"{BASE}dead").ident == dead

    rig.do(upsert("c", id=7))
    (by_id,) = rig.send({"type": "delete", "id": "7"})
    rig.settle()
    assert (show(rig, by_id).state, show(rig, by_id).subject) == ("published", "id 7")

    assert show(rig, "1-0").state == "unknown"
    for asked in (f"{BASE}never", "https://other.example/", "0123456789abcdef"):
        with pytest.raises(InvalidError):
            show(rig, asked)


def test_a_request_that_was_refused_is_shown_by_its_id(rig: Rig) -> None:
    said = {
        "code": "invalid", "reason": "PROTOCOL L5", "status": 422, "request": "0123456789abcdef",
        "faults": [{"field": "loc", "rule": "PROTOCOL L5", "detail": "another host"}],
    }  # fmt: skip
    rig.client.xadd(rig.keys.refused, {"refused": json.dumps(said)})

    found = show(rig, "0123456789abcdef")

    assert found.state == "refused"
    assert found.steps[0].what == "422 invalid: PROTOCOL L5; loc: another host (PROTOCOL L5)"


def test_how_far_an_engine_is_with_a_page_is_said(rig: Rig) -> None:
    (ident,) = rig.send(upsert("a"))
    rig.settle()
    rig.client.zadd("{demo}:notify:bing", {f"{BASE}a": 1})
    assert show(rig, ident).steps[-1][:2] == ("to be told", "bing")

    rig.client.rename("{demo}:notify:bing", "{demo}:notify:bing:sending")
    assert show(rig, ident).steps[-1][:2] == ("being told", "bing")

    decided = show(rig, ident).steps[1].at_ms
    assert decided is not None
    rig.client.delete("{demo}:notify:bing:sending")
    rig.client.zadd("{demo}:told:bing", {f"{BASE}a": decided - 1})
    assert show(rig, ident).steps[-1].step == "published", "it was told of an earlier change"

    rig.client.zadd("{demo}:told:bing", {"": decided + 700})
    assert show(rig, ident).steps[-1][:3] == ("told", "bing", decided + 700)


def test_what_a_later_event_changed_back_before_the_publish_is_unchanged(
    rig: Rig,
) -> None:
    rig.do(upsert("a"))
    rig.client.delete(rig.keys.notify("bing"))
    (ident,) = rig.send(upsert("a", lastmod="2026-01-01"))
    pump = rig.pump()
    with silence():
        pump.apply_all()
        rig.send(upsert("a"))
        pump.apply_all()
    rig.settle()

    found = show(rig, ident)
    assert found.state == "unchanged"
    assert "changed it back" in found.steps[-1].what
    rig.client.delete(rig.keys.revisions)
    assert "no longer kept" in show(rig, ident).steps[-1].what
