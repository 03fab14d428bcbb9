"""Yandex read back: its lists page by page, what they say of a page, and its sitemaps."""

from __future__ import annotations

from typing import Any

import pytest

from shared.domain.index_status import IndexState
from tests.integration.readback.reading import ReadingRig, yandex_table
from tests.integration.rig import BASE
from tests.integration.webmasters import Answer, Yandex
from worker.readback.engine_reader import UnreadError

DAY = "2030-01-01T00:00:00,000+0300"
LISTS = ("indexing/samples", "search-urls/events/samples", "search-urls/in-search/samples")
FETCHED, EVENTS, SEARCH = LISTS


@pytest.fixture
def tables(yandex: Yandex) -> dict[str, Any]:
    return {"yandex": yandex_table(yandex.url)}


def row(loc: str, **more: Any) -> dict[str, Any]:
    return {"url": BASE + loc, "title": "A page"} | more


def test_a_page_in_search_is_known_and_others_are_as_the_lists_say(
    site: ReadingRig, yandex: Yandex
) -> None:
    site.publish("in", "out", "fetched", "broken", "nowhere")
    fetched = {"access_date": DAY, "status": "HTTP_2XX", "http_code": 200}
    yandex.lists = {
        FETCHED: [row("in", **fetched), row("fetched", **fetched),
                  row("broken", **fetched | {"http_code": 503}), row("of-nobody", **fetched)],
        EVENTS: [row("out", event="REMOVED_FROM_SEARCH", event_date=DAY, last_access=DAY,
                     excluded_url_status="LOW_QUALITY"),
                 row("in", event="APPEARED_IN_SEARCH", event_date=DAY, last_access=DAY)],
        SEARCH: [row("in", last_access=DAY)],
    }  # fmt: skip
    site.later(31)
    site.reading.read("yandex")

    said = {
        loc: site.answer("yandex", loc) for loc in ("in", "out", "fetched", "broken", "nowhere")
    }
    assert {loc: answer and (answer.status.state, answer.status.said, bool(answer.known_ms))
            for loc, answer in said.items()} == {
        "in": (IndexState.LISTED, "in search", True),
        "out": (IndexState.EXCLUDED, "LOW_QUALITY", False),
        "fetched": (IndexState.CRAWLED, "fetched: HTTP 200", False),
        "broken": (IndexState.EXCLUDED, "fetched: HTTP 503", False),
        "nowhere": (IndexState.UNKNOWN, "in none of its lists", False),
    }  # fmt: skip
    assert site.reading.chains.count() == 5  # a page of its lists alone is not followed


def test_the_lists_are_read_to_their_end_and_again_after_hours(
    site: ReadingRig, yandex: Yandex
) -> None:
    site.publish("last")
    yandex.lists = {SEARCH: [*(row(f"{n}") for n in range(250)), row("last", last_access=DAY)]}
    site.later(31)
    for _ in range(3):
        site.reading.read("yandex")
    answer = site.answer("yandex", "last")

    assert answer is not None
    assert answer.known_ms
    assert yandex.counted == {"sitemaps": 1, FETCHED: 1, EVENTS: 1, SEARCH: 3}
    site.later(6 * 60)
    site.reading.read("yandex")
    assert yandex.counted[SEARCH] == 6


def test_the_sitemaps_are_read_page_by_page(site: ReadingRig, yandex: Yandex) -> None:
    yandex.sitemaps = [
        {"sitemap_id": f"c7-{n}", "sitemap_url": f"{BASE}pages-{n}.xml", "last_access_date": DAY,
         "errors_count": n, "urls_count": 10, "children_count": 0, "sources": ["ROBOTS_TXT"],
         "sitemap_type": "SITEMAP"}
        for n in range(150)
    ]  # fmt: skip
    site.reading.read("yandex")
    found = [*site.known().sitemaps()]

    assert len(found) == 150
    assert found[149] == {
        "engine": "yandex", "sitemap": f"{BASE}pages-149.xml", "read": "2029-12-31T21:00:00Z",
        "errors": 149, "warnings": None, "urls": 10, "said": "SITEMAP",
    }  # fmt: skip


def test_a_page_that_left_the_search_is_unknown_again(site: ReadingRig, yandex: Yandex) -> None:
    site.publish("a")
    yandex.lists = {SEARCH: [row("a", last_access=DAY)]}
    site.later(31)
    site.reading.read("yandex")
    yandex.lists = {EVENTS: [row("a", event="REMOVED_FROM_SEARCH", excluded_url_status="NO_INDEX")]}
    site.later(6 * 60 + 1)
    site.reading.read("yandex")
    answer = site.answer("yandex", "a")

    assert answer is not None
    assert (answer.status.said, answer.known_ms) == ("NO_INDEX", 0)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(403, {"error_code": "INVALID_OAUTH_TOKEN", "error_message": "no"}),
        Answer(404, {"error_code": "HOST_NOT_VERIFIED", "error_message": "no"}),
        Answer(200, {"sitemaps": "none"}),
    ],
    ids=["403", "404", "another form"],
)
def test_f30_what_it_refuses_is_a_failure(site: ReadingRig, yandex: Yandex, answer: Answer) -> None:
    yandex.faults = [answer]
    with pytest.raises(UnreadError):
        site.reading.read("yandex")


def test_a_quota_is_waited_for_as_long_as_it_says(site: ReadingRig, yandex: Yandex) -> None:
    said = {"error_code": "TOO_MANY_REQUESTS_ERROR", "error_message": "later"}
    yandex.faults = [Answer(429, said, {"Retry-After": "3600"})]
    site.reading.read("yandex")
    asked = len(yandex.calls)
    site.later(59)
    site.reading.read("yandex")

    assert len(yandex.calls) == asked
    site.later(2)
    site.reading.read("yandex")
    assert len(yandex.calls) > asked
