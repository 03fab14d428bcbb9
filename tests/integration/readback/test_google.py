"""Search Console read back: sitemaps, URL Inspection, its quota, and what its refusals mean."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.domain.index_status import IndexState
from tests.integration.readback.reading import SERVICE, ReadingRig, google_table
from tests.integration.rig import BASE
from tests.integration.webmasters import (
    SECRET,
    Account,
    Answer,
    Google,
    indexed,
    not_indexed,
    serving,
)
from worker.readback.engine_reader import UnreadError
from worker.readback.site_readback import EngineRestsError


@pytest.fixture(scope="module")
def account() -> Account:
    return Account()


@pytest.fixture
def google(account: Account) -> Iterator[Google]:
    with serving(Google(account.public, BASE)) as server:
        yield server


@pytest.fixture
def tables(tmp_path: Path, google: Google, account: Account) -> dict[str, Any]:
    (tmp_path / SERVICE).write_text(account.json)
    return {"google": google_table(google.url, tmp_path / SERVICE)}


def inspected(google: Google) -> list[str]:
    """The pages it was asked about, in order."""
    return [
        json.loads(call.body)["inspectionUrl"].removeprefix(BASE)
        for call in google.asked("index:inspect")
    ]


def test_a_page_is_asked_about_after_a_while_and_known_once_google_lists_it(
    site: ReadingRig, google: Google
) -> None:
    site.publish("a")
    site.reading.read("google")
    assert inspected(google) == []

    site.later(31)
    site.reading.read("google")
    first = site.answer("google", "a")
    google.pages[BASE + "a"] = indexed(site.at(1), BASE + "a")
    site.later(61)
    site.reading.read("google")
    known = site.answer("google", "a")

    assert inspected(google) == ["a", "a"]
    assert first is not None
    assert (first.status.state, first.status.said, first.known_ms) == (
        IndexState.UNKNOWN, "URL is unknown to Google", 0,
    )  # fmt: skip
    assert known is not None
    assert known.status.said == "Submitted and indexed"
    assert known.known_ms == site.now
    site.later(10_000)
    site.reading.read("google")
    assert len(inspected(google)) == 2  # what it knows is asked about no more


def test_the_newest_are_asked_about_first_then_those_that_were_unknown(
    site: ReadingRig, google: Google
) -> None:
    site.publish("old")
    site.later(31)
    site.reading.read("google")
    site.publish("new-1")
    site.publish("new-2")

    site.later(200)
    site.reading.read("google")

    assert inspected(google) == ["old", "new-2", "new-1", "old"]


def test_a_changed_page_is_known_by_a_crawl_after_its_publish(
    site: ReadingRig, google: Google
) -> None:
    site.publish("a", lastmod="2026-01-01")
    site.later(31)
    google.pages[BASE + "a"] = indexed(site.at(-20), BASE + "a")
    site.reading.read("google")
    of_new = site.answer("google", "a")
    google.pages[BASE + "a"] = indexed("2026-01-02T03:04:05Z", BASE + "a")
    site.publish("a", lastmod="2026-02-02")
    site.later(31)
    site.reading.read("google")
    before = site.answer("google", "a")
    google.pages[BASE + "a"] = indexed(site.at(), BASE + "a")
    site.later(61)
    site.reading.read("google")
    after = site.answer("google", "a")

    assert of_new is not None
    assert of_new.known_ms
    assert before is not None
    assert (before.status.state, before.known_ms) == (IndexState.LISTED, 0)
    assert after is not None
    assert after.known_ms == site.now


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (not_indexed("Discovered - currently not indexed"), IndexState.DISCOVERED),
        (not_indexed("Crawled - currently not indexed", "2026-01-01"), IndexState.CRAWLED),
        (not_indexed("Blocked by robots.txt"), IndexState.EXCLUDED),
        ({"verdict": "FAIL", "coverageState": "Not found (404)"}, IndexState.EXCLUDED),
    ],
)  # fmt: skip
def test_what_is_not_in_the_index_is_not_known(
    site: ReadingRig, google: Google, status: dict[str, str], state: IndexState
) -> None:
    google.pages[BASE + "a"] = status
    site.publish("a")
    site.later(31)
    site.reading.read("google")

    answer = site.answer("google", "a")
    assert answer is not None
    assert (answer.status.state, answer.status.said) == (state, status["coverageState"])
    assert not answer.known_ms


def test_the_sitemaps_are_read_with_their_errors_every_few_hours(
    site: ReadingRig, google: Google
) -> None:
    google.sitemaps = [{
        "path": f"{BASE}sitemap.xml", "lastSubmitted": "2026-11-01T00:00:00.000Z",
        "isPending": False, "isSitemapsIndex": True, "lastDownloaded": "2026-11-02T03:04:05.678Z",
        "warnings": "2", "errors": "1",
        "contents": [{"type": "web", "submitted": "1200", "indexed": "0"}],
    }]  # fmt: skip
    site.reading.read("google")
    site.reading.read("google")
    site.later(6 * 60 + 1)
    site.reading.read("google")

    assert len(google.asked("/sitemaps")) == 2
    assert [*site.known().sitemaps()] == [{
        "engine": "google", "sitemap": f"{BASE}sitemap.xml", "read": "2026-11-02T03:04:05Z",
        "errors": 1, "warnings": 2, "urls": 1200, "said": "",
    }]  # fmt: skip


def test_the_daily_budget_counts_every_request_and_ends_the_reading(
    store: redis.Redis, tmp_path: Path, google: Google, account: Account
) -> None:
    (tmp_path / SERVICE).write_text(account.json)
    table = google_table(google.url, tmp_path / SERVICE) | {"daily": 3, "per_minute": 600}
    site = ReadingRig(store, tmp_path / "public", {"google": table})
    site.publish("a", "b", "c", "d")
    site.later(31)
    for _ in range(3):
        site.reading.read("google")

    assert len(inspected(google)) == 2  # and one for the sitemaps
    assert site.known().states(site.now)[0]["requests_today"] == 3
    site.later(24 * 60)
    site.reading.read("google")
    assert len(inspected(google)) == 4


def test_an_exceeded_quota_is_waited_for_and_is_no_failure(
    site: ReadingRig, google: Google
) -> None:
    google.quota = 0
    site.publish("a")
    site.later(31)
    site.reading.read("google")
    asked = len(google.calls)
    site.reading.read("google")

    (state,) = site.known().states(site.now)
    assert len(google.calls) == asked
    assert state["resting_until"] is not None
    google.quota = 2
    site.later(5 * 60)
    site.reading.read("google")
    assert site.answer("google", "a") is not None
    assert site.state("google").breaker is None


@pytest.mark.parametrize(
    "answer",
    [
        Answer(403, {"error": {"code": 403, "message": "You do not own this site", "status": "x"}}),
        Answer(500, {"error": {"code": 500, "message": "Internal error", "status": "INTERNAL"}}),
        Answer(200, b"<html>not JSON</html>"),
        Answer(200, []),
    ],
    ids=["403", "500", "no JSON", "no object"],
)
def test_f30_a_failing_engine_stays_red_and_is_asked_ever_more_rarely(
    site: ReadingRig, google: Google, answer: Answer
) -> None:
    google.down = answer
    google.faults = [Answer(200, {"access_token": SECRET})]  # the token is not what fails
    site.publish("a")
    with pytest.raises(UnreadError):
        site.reading.read("google")
    asked = len(google.calls)
    with pytest.raises(EngineRestsError):  # of another worker, too
        site.another().read("google")
    assert len(google.calls) == asked
    site.later(2)
    with pytest.raises(UnreadError):
        site.reading.read("google")
    site.later(1.5)
    with pytest.raises(EngineRestsError):
        site.reading.read("google")

    google.down = None
    site.later(60)
    site.reading.read("google")
    assert site.state("google").breaker is None


def test_t30_no_key_and_no_token_is_in_an_error(site: ReadingRig, google: Google) -> None:
    google.faults = [
        Answer(200, {"access_token": SECRET}),
        Answer(403, f"the token {SECRET} may not".encode()),
    ]
    with pytest.raises(UnreadError) as error:
        site.reading.read("google")

    assert SECRET not in str(error.value)
    breaker = site.state("google").breaker
    assert breaker is not None
    assert SECRET not in breaker.why


def test_a_page_asked_for_is_followed_from_its_version_on(site: ReadingRig, google: Google) -> None:
    site.publish("a")
    site.reading.chains.forget(["google"])
    google.pages[BASE + "a"] = indexed(site.at(1), BASE + "a")
    answer = site.reading.ask("google", BASE + "a")

    assert answer is not None
    assert answer.known_ms == site.now
    assert site.reading.ask("google", BASE + "nothing") is None
