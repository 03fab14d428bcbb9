"""Bing read back: feeds and URL info, its dates, and its codes of errors."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from shared.domain.index_status import IndexState
from tests.integration.readback.reading import ReadingRig
from tests.integration.rig import BASE
from tests.integration.webmasters import SECRET, Answer, Bing, bing_feed, bing_page
from worker.readback.engine_reader import UnreadError

CRAWLED, FOUND = 1_795_262_400_000, 1_795_176_000_000


@pytest.mark.parametrize(
    ("info", "state", "known"),
    [
        (bing_page(CRAWLED, FOUND, 200), IndexState.LISTED, True),
        (bing_page(CRAWLED, FOUND, 0), IndexState.LISTED, True),
        (bing_page(CRAWLED, FOUND, 404), IndexState.EXCLUDED, False),
        (bing_page(None, FOUND), IndexState.DISCOVERED, False),
        (bing_page(), IndexState.UNKNOWN, False),
        (None, IndexState.UNKNOWN, False),
    ],
    ids=["fetched", "without a status", "404", "discovered", "never seen", "null"],
)
def test_bing_knows_a_page_that_it_fetched(
    site: ReadingRig, bing: Bing, info: Any, state: IndexState, known: bool
) -> None:
    bing.pages[BASE + "a"] = info
    site.publish("a")
    site.later(31)
    site.reading.read("bing")
    answer = site.answer("bing", "a")

    assert answer is not None
    assert answer.status.state is state
    assert bool(answer.known_ms) is known


def test_the_feeds_are_read_with_the_time_of_their_last_crawl(site: ReadingRig, bing: Bing) -> None:
    bing.feeds = [bing_feed(f"{BASE}sitemap.xml", CRAWLED, 1200)]
    site.reading.read("bing")

    assert [*site.known().sitemaps()] == [{
        "engine": "bing", "sitemap": f"{BASE}sitemap.xml", "read": "2026-11-21T12:00:00Z",
        "errors": None, "warnings": None, "urls": 1200, "said": "Success",
    }]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "message"),
    [(3, "ERROR!!! InvalidApiKey"), (14, "ERROR!!! NotAuthorized"), (1, "ERROR!!! InternalError")],
)
def test_f30_a_refusal_is_a_failure_with_what_bing_said(
    site: ReadingRig, bing: Bing, code: int, message: str
) -> None:
    bing.faults = [Answer(400, {"ErrorCode": code, "Message": message})]
    with pytest.raises(UnreadError, match=message):
        site.reading.read("bing")


def test_a_throttled_user_waits_for_hours_and_fails_not(site: ReadingRig, bing: Bing) -> None:
    bing.faults = [Answer(400, {"ErrorCode": 4, "Message": "ERROR!!! ThrottleUser"})]
    site.reading.read("bing")
    asked = len(bing.calls)
    site.later(60)
    site.reading.read("bing")

    assert len(bing.calls) == asked
    site.later(6 * 60)
    site.reading.read("bing")
    assert len(bing.calls) > asked


def test_pages_that_bing_refuses_one_after_another_are_a_failure(
    site: ReadingRig, bing: Bing
) -> None:
    site.publish("a", "b", "c", "d")
    site.reading.read("bing")  # the feeds
    site.later(31)
    refused = Answer(400, {"ErrorCode": 7, "Message": "ERROR!!! InvalidUrl"})
    bing.faults = [refused]
    site.reading.read("bing")
    states = [site.answer("bing", loc) for loc in "abcd"]
    bing.down = refused
    site.later(200)
    with pytest.raises(UnreadError, match="InvalidUrl"):
        site.reading.read("bing")

    found = [answer.status.state for answer in states if answer is not None]
    assert sorted(found) == ["refused", "unknown", "unknown", "unknown"]


def test_t30_the_key_is_in_the_address_and_nowhere_else(
    site: ReadingRig, bing: Bing, store: redis.Redis
) -> None:
    bing.faults = [Answer(400, f"no such key {SECRET}".encode())]
    with pytest.raises(UnreadError) as error:
        site.reading.read("bing")

    assert bing.calls[0].query["apikey"] == SECRET
    assert SECRET not in str(error.value)
    stored = store.hgetall(site.rig.keys.readback)
    assert stored
    assert not any(SECRET.encode() in value for value in stored.values())
