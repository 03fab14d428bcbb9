"""The event `resync`: recorded with its batch, closed by the reconcile that answers it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.errors import InvalidError
from shared.events.event import EXTENDED_SCHEMA, Event
from shared.events.resync_scope import WHOLE, Scope
from tests.integration.reconcile.reconciled import reconcile, record
from tests.integration.rig import BASE, Rig
from worker.sources import Item, RecordRefusal

BLOG, POSTS = Scope(prefix=BASE + "blog/"), Scope(section="posts")


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path, sections={"posts": {}, "news": {"news": True}})


def resync(**members: Any) -> dict[str, Any]:
    return {"type": "resync", **members}


@pytest.mark.parametrize(
    ("members", "scope"),
    [
        ({}, WHOLE),
        ({"section": "posts"}, POSTS),
        ({"prefix": "HTTPS://www.example.com:443/blog/"}, BLOG),
        ({"section": None, "prefix": None, "version": 5}, WHOLE),
    ],
)
def test_a_resync_is_recorded_as_a_scope(rig: Rig, members: dict[str, Any], scope: Scope) -> None:
    (ident,) = rig.send(resync(**members))
    rig.settle()

    assert rig.resyncs.open() == {scope: int(ident.split("-")[0])}
    assert rig.reasons() == [f"resync asked: {scope}"]
    rig.check()


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"section": "posts", "prefix": BASE}, "prefix"),
        ({"section": "shop"}, "section"),
        ({"section": "news"}, "section"),
        ({"prefix": "https://elsewhere.example/"}, "prefix"),
        ({"prefix": 7}, "prefix"),
        ({"loc": BASE}, "loc"),
        ({"id": None}, "id"),
        ({"lastmod": "2026-01-01"}, "lastmod"),
        ({"what": "ever"}, "what"),
    ],
)
def test_a_resync_says_nothing_else(rig: Rig, members: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidError) as caught:
        rig.parse(resync(**members))

    assert {fault.field for fault in caught.value.faults} == {field}


def test_an_event_about_a_page_has_no_prefix(rig: Rig) -> None:
    with pytest.raises(InvalidError, match="only a resync"):
        rig.parse({"type": "upsert", "loc": BASE + "a", "prefix": BASE})


def test_older_workers_leave_a_resync_to_newer_ones(rig: Rig) -> None:
    """RELIABILITY F21."""
    stored = rig.parse(resync(section="posts")).dump()

    assert json.loads(stored)["v"] == EXTENDED_SCHEMA == 2
    assert Event.load(stored).section == "posts"


def test_pages_of_the_same_batch_are_settled_with_it(rig: Rig) -> None:
    rig.do({"type": "upsert", "loc": "a"}, resync(), {"type": "upsert", "loc": "b"})

    assert set(rig.listed()) == {BASE + "a", BASE + "b"}
    assert set(rig.resyncs.open()) == {WHOLE}


def test_a_scope_is_as_old_as_its_latest_event_in_whatever_order_they_come(rig: Rig) -> None:
    first, second = rig.send(resync(), resync(section="posts"))
    (last,) = rig.send(resync())
    rig.settle()
    read = rig.pages.read([])
    rig.pages.apply(read, read.state, resyncs=[(str(WHOLE), int(first.split("-")[0]))])

    assert rig.resyncs.open() == {
        WHOLE: int(last.split("-")[0]),
        POSTS: int(second.split("-")[0]),
    }


def test_very_many_scopes_are_the_whole_site(rig: Rig) -> None:
    ids = rig.send(*(resync(prefix=f"{BASE}{n}/") for n in range(1001)))
    rig.settle()

    assert rig.resyncs.open() == {WHOLE: int(ids[-1].split("-")[0])}


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (WHOLE, set()),
        (POSTS, {WHOLE, BLOG}),
        (Scope(prefix=BASE), {WHOLE, POSTS}),
        (Scope(prefix=BASE + "blog/2026/"), {WHOLE, POSTS, BLOG}),
    ],
)
def test_a_reconcile_closes_the_scopes_it_answers(rig: Rig, scope: Scope, left: set[Scope]) -> None:
    rig.do(resync(), resync(section="posts"), resync(prefix=BLOG.prefix))

    reconcile(rig, [], scope)

    assert set(rig.resyncs.open()) == left
    assert (rig.resyncs.last_ms() > 0) == scope.whole


def test_a_scope_that_was_asked_for_again_meanwhile_stays_open(rig: Rig) -> None:
    rig.do(resync(), resync(section="posts"))

    def read() -> Any:
        rig.do(resync(section="posts"))
        yield record("a")

    reconcile(rig, read())

    assert set(rig.resyncs.open()) == {POSTS}


def test_a_reconcile_that_could_not_finish_closes_nothing(rig: Rig) -> None:
    rig.do(resync())
    items: list[Item] = [record("a"), RecordRefusal("two.xml", "N4", "not found", whole=True)]

    reconcile(rig, items)

    assert set(rig.resyncs.open()) == {WHOLE}
    assert rig.resyncs.last_ms() == 0
