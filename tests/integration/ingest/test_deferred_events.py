"""Pages appear at their publish_at and leave at their expires, though no event comes then."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.admin.site_status import Inspector
from shared.domain.deferral import AT
from shared.events.event import Event
from shared.sitemap import w3c_dates
from tests import feeds as reader
from tests.integration.clocked import Clock, Clocked
from tests.integration.rig import BASE
from worker.ingest.expiry_processor import SET_ASIDE_MS
from worker.publishing.news_refresh import refresh

HOUR = 3_600_000
DAY = 24 * HOUR
NOW = int(time.time()) * 1000
"""Milliseconds since 1970 at which the tests begin: events arrive by the clock of the machine."""


class Desk(Clocked):
    """A site under a clock of its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(Clock(NOW), *arguments, **options)
        self.root.mkdir()

    def at(self, ms: int) -> set[str]:
        """It is `ms` now, and a sweep has passed; the paths that are listed."""
        self.clock.ms = ms
        self.pump().expire()
        self.settle()
        return self.paths()

    def paths(self) -> set[str]:
        return {loc.removeprefix(BASE) for loc in self.listed()}

    def page(self, path: str = "a") -> dict[str, Any]:
        return Inspector(self.client, self.name, self.site).entry(f"{BASE}{path}")


@pytest.fixture
def desk(store: redis.Redis, tmp_path: Path) -> Desk:
    return Desk(store, tmp_path / "public", sections={"posts": {"split": "month"}})


def page(path: str = "a", **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": path, **members}


def w3c(ms: int) -> str:
    return w3c_dates.from_epoch_s(ms // 1000)


def test_a_page_is_listed_from_its_publish_at_until_it_expires(desk: Desk) -> None:
    members = {"publish_at": w3c(NOW + HOUR), "expires": w3c(NOW + 3 * HOUR)}
    desk.do(page(lastmod="2026-11-20", **members), page("b"))

    assert desk.paths() == {"b"}
    found = desk.page()
    assert found["listed_from"] == members["publish_at"]
    assert members["publish_at"] in found["why"]
    assert desk.at(NOW + HOUR - 1) == {"b"}
    assert desk.at(NOW + HOUR) == {"a", "b"}
    assert desk.listed()[f"{BASE}a"] == "2026-11-20"
    assert desk.page()["listed_until"] == members["expires"]
    desk.check()
    assert desk.at(NOW + 3 * HOUR - 1) == {"a", "b"}
    assert desk.at(NOW + 3 * HOUR) == {"b"}
    assert desk.reasons()[-1] == "expired"
    assert not desk.client.exists(desk.keys.coming, desk.keys.expiry)
    desk.check()


def test_dates_alone_are_whole_days(desk: Desk) -> None:
    midnight = NOW - NOW % DAY + 2 * DAY
    day = w3c(midnight)[: len("2026-11-23")]
    desk.do(page(publish_at=day, expires=day))

    assert desk.at(midnight - 1) == set()
    assert desk.at(midnight) == {"a"}
    assert desk.at(midnight + DAY - 1) == {"a"}
    assert desk.at(midnight + DAY) == set()


def test_a_listed_page_that_is_to_be_published_later_is_unlisted_until_then(desk: Desk) -> None:
    desk.do(page(), page(publish_at=w3c(NOW + HOUR)))

    assert desk.paths() == set()
    assert desk.reasons()[-1] == f"not published before {w3c(NOW + HOUR)}"
    assert desk.at(NOW + HOUR) == {"a"}


def test_a_page_that_has_expired_on_arrival_is_not_listed(desk: Desk) -> None:
    desk.do(page("b", expires=w3c(NOW - HOUR)), page("c"), page("c", expires="2020-11-20"))

    assert desk.paths() == set()
    desk.check()


@pytest.mark.parametrize(
    ("later", "listed"),
    [
        ({}, {"a"}),
        ({"noindex": True}, set()),
        ({"publish_at": w3c(NOW + 2 * HOUR)}, set()),
        ({"expires": w3c(NOW + HOUR)}, set()),
        ({"type": "delete"}, set()),
    ],
    ids=["published", "noindex", "later", "expires", "deleted"],
)
def test_the_newest_event_of_a_page_counts_and_not_what_it_was_to_be(
    desk: Desk, later: dict[str, Any], listed: set[str]
) -> None:
    desk.do(page(publish_at=w3c(NOW + HOUR), version=NOW, lastmod="2020-01-01"))
    desk.do(page(version=NOW + 1, lastmod="2021-01-01") | later)
    desk.do(page(publish_at=w3c(NOW + HOUR), version=NOW - 1))

    assert desk.at(NOW + HOUR) == listed
    assert set(desk.listed().values()) <= {"2021-01-01"}
    assert desk.at(NOW + 2 * HOUR) == ({"a"} if "publish_at" in later else listed)
    desk.check()


def test_an_event_without_expires_keeps_the_page_for_good(desk: Desk) -> None:
    desk.do(page(expires=w3c(NOW + HOUR)))
    desk.do(page())  # the same content

    assert desk.at(NOW + DAY) == {"a"}


def test_a_page_that_moves_before_it_appears_appears_where_it_moved(desk: Desk) -> None:
    desk.do(page(id="7", publish_at=w3c(NOW + HOUR)))
    desk.do(page("b", id="7", publish_at=w3c(NOW + HOUR)))

    assert desk.at(NOW + HOUR) == {"b"}
    desk.do({"type": "delete", "id": "7"})
    assert desk.paths() == set()
    desk.check()


def test_a_version_of_a_group_enters_it_when_it_appears_and_leaves_it(desk: Desk) -> None:
    group = {"group": "g"}
    desk.do(
        page("de", lang="de", **group),
        page("en", lang="en", publish_at=w3c(NOW + HOUR), expires=w3c(NOW + 2 * HOUR), **group),
    )

    assert b"hreflang" not in desk.shard_files()["pages-1"]
    assert desk.at(NOW + HOUR) == {"de", "en"}
    assert desk.shard_files()["pages-1"].count(b"hreflang") == 4
    desk.check()
    assert desk.at(NOW + 2 * HOUR) == {"de"}
    assert b"hreflang" not in desk.shard_files()["pages-1"]
    desk.check()


def test_the_month_and_the_feeds_are_those_of_the_publication(
    store: redis.Redis, tmp_path: Path
) -> None:
    desk = Desk(store, tmp_path / "public", feed=True, sections={"posts": {"split": "month"}})
    appears = NOW + 40 * DAY
    desk.do(page("b"))
    desk.do(page(section="posts", publish_at=w3c(appears)))

    desk.at(appears + HOUR)

    assert f"posts-{w3c(appears)[:7]}" in desk.shard_files()
    (newest, *_) = reader.atom((desk.root / "atom.xml").read_bytes())
    assert (newest.loc, newest.updated) == (f"{BASE}a", w3c(appears))


def test_engines_are_told_when_the_page_is_there(store: redis.Redis, tmp_path: Path) -> None:
    key = {"indexnow": {"key": "0123456789abcdef"}}
    desk = Desk(store, tmp_path / "public", notify=key)
    desk.do(page(publish_at=w3c(NOW + HOUR)))
    told = desk.keys.notify("indexnow")
    assert not store.exists(told)

    desk.at(NOW + HOUR)

    assert store.zrange(told, 0, -1) == [f"{BASE}a".encode()]


def test_many_expire_at_once_and_the_shrink_guard_lets_them(
    store: redis.Redis, tmp_path: Path
) -> None:
    """RELIABILITY T32: what leaves by its own time is no loss."""
    desk = Desk(store, tmp_path / "public", shrink_least=1, shrink_share=0.1)
    desk.do(*(page(f"p/{n}", expires=w3c(NOW + HOUR)) for n in range(300)), page())

    assert desk.at(NOW + HOUR) == {"a"}
    desk.check()


def test_a_damaged_deferral_is_set_aside_and_holds_up_no_other(desk: Desk) -> None:
    desk.do(*(page(path, publish_at=w3c(NOW + HOUR)) for path in "abcd"))
    other = b"\0" * 16 + Event("upsert", "https://elsewhere.example/").dump()
    for path, stored in (("a", b"junk"), ("b", other)):
        desk.client.hset(desk.keys.coming, f"{AT}{BASE}{path}", stored)
    desk.client.hdel(desk.keys.coming, f"{AT}{BASE}c")

    assert desk.at(NOW + HOUR) == {"d"}
    left = dict(desk.client.zrange(desk.keys.expiry, 0, -1, withscores=True))
    assert left == {f"{AT}{BASE}{path}".encode(): NOW + HOUR + SET_ASIDE_MS for path in "ab"}


def test_a_lost_due_time_is_restored_by_the_hourly_check(desk: Desk) -> None:
    desk.do(page(publish_at=w3c(NOW + HOUR)))
    desk.client.delete(desk.keys.expiry)

    refresh(desk.pages, desk.state, desk.pump().expiry.schedule)

    assert desk.at(NOW + HOUR) == {"a"}


def test_two_workers_at_once_decide_a_deferral_once(desk: Desk) -> None:
    desk.do(*(page(f"p/{n}", publish_at=w3c(NOW + HOUR)) for n in range(40)))
    desk.clock.ms = NOW + HOUR
    first, second = desk.pump("w1").expiry, desk.pump("w2").expiry
    keys = [key.decode() for key in first.schedule.due(NOW + HOUR)]

    read, after, decisions = first._deferred.decided(keys, NOW + HOUR)
    assert second.run() == 40

    assert not desk.pages.apply(read, after, decisions=decisions)
    desk.settle()
    assert len(desk.paths()) == 40
    desk.check()
