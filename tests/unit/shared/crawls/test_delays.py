"""How long after a publish it was fetched: by which rules, and what is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.clock import percentile
from shared.crawls.delays import BOUNDS_S, CrawlDelays, Period, kind_of
from shared.crawls.log_lines import LoggedRequest
from tests.unit.shared.crawls.crawling import Facts

BASE = "https://www.example.com/"
ALL = Period(0, 1 << 60)
SHARD, INDEX, PAGE = BASE + "posts-1.xml", BASE + "sitemap.xml", BASE + "p?q=1&r=%C3%A4"
BOT = "Googlebot"


def request(at_ms: int, url: str = SHARD, **more: Any) -> LoggedRequest:
    target = url.removeprefix(BASE[:-1])
    return LoggedRequest(at_ms, "GET", target, 200, "", "66.249.66.1")._replace(**more)


def crawls(
    facts: Facts, *requests: LoggedRequest, engine: str = BOT, **options: Any
) -> CrawlDelays:
    found = CrawlDelays(BASE, facts, **options)
    for each in requests:
        if found.fetched(engine, each):
            found.take(engine, each)
    return found


def told(of: CrawlDelays, kind: str = "shards", period: Period = ALL) -> dict[str, Any]:
    (row,) = [row for row in of.report(BOT, period)["kinds"] if row["kind"] == kind]
    return dict(row)


def test_the_first_fetch_after_a_publish_is_its_delay() -> None:
    facts = Facts([(SHARD, 10_000)])
    row = told(crawls(facts, request(9_000), request(15_000), request(90_000)))

    assert (row["published"], row["fetched"], row["fetches"]) == (1, 1, 3)
    assert row["p50_s"] == row["p95_s"] == 5.0
    assert row["latest"] == "1970-01-01T00:01:30Z"


@pytest.mark.parametrize("at_ms", [9_999, 10_000])
def test_a_fetch_before_or_with_a_publish_does_not_count_for_it(at_ms: int) -> None:
    row = told(crawls(Facts([(SHARD, 10_000)]), request(at_ms)))

    assert (row["published"], row["fetched"], row["p50_s"]) == (1, 0, None)


def test_what_is_fetched_after_the_next_publish_is_another_file() -> None:
    facts = Facts([(SHARD, 20_000), (SHARD, 10_000)])

    row = told(crawls(facts, request(25_000)))

    assert (row["published"], row["fetched"], row["p50_s"]) == (2, 1, 5.0)


def test_a_page_waits_for_its_fetch_through_all_its_changes() -> None:
    facts = Facts((), [(PAGE, 10_000), (PAGE, 20_000), (PAGE, 40_000)])

    row = told(crawls(facts, request(25_000, PAGE)), "pages")

    assert (row["published"], row["fetched"]) == (3, 2)
    assert (row["p50_s"], row["p95_s"]) == (5.0, 15.0)


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({}, True), ({"status": 304}, True), ({"status": 404}, False), ({"status": 206}, False),
        ({"status": 301}, False), ({"status": 500}, False), ({"method": "HEAD"}, False),
        ({"host": "www.example.com"}, True), ({"host": "WWW.example.com:443"}, True),
        ({"host": "example.com"}, True), ({"host": "other.example.com"}, False),
        ({"target": "/p?q=1&r=%c3%a4"}, True), ({"target": "/p"}, False),
        ({"target": "/P?q=1&r=%C3%A4"}, False),
    ],
)  # fmt: skip
def test_only_whole_answers_of_this_site_are_fetches(more: dict[str, Any], counts: bool) -> None:
    found = crawls(Facts((), [(PAGE, 1_000)]), request(2_000, PAGE, **more))

    assert (
        sum(row["fetched"] for name in found.engines() for row in found.report(name, ALL)["kinds"])
        == counts
    )
    assert found.other_hosts == (more.get("host") == "other.example.com")


def test_publishes_outside_the_log_do_not_count_and_are_told() -> None:
    facts = Facts([(SHARD, at_ms) for at_ms in (1_000, 10_000, 20_000, 90_000)])
    found = crawls(facts, request(2_000), request(12_000))

    row = told(found, period=Period(10_000, 20_000))

    assert (row["published"], row["fetched"], row["p50_s"]) == (2, 1, 2.0)
    assert found.outside(Period(10_000, 20_000)) == (1, 1)


def test_fetches_before_since_are_passed_over() -> None:
    found = crawls(Facts([(SHARD, 1_000)]), request(2_000), request(9_000), since_ms=5_000)

    assert told(found)["fetches"] == 1


def test_files_that_were_not_published_lately_are_told_by_their_last_fetch() -> None:
    robots = BASE + "robots.txt"
    found = crawls(Facts(), request(2_000, robots), request(3_000, SHARD), listed=[SHARD])

    report = found.report(BOT, ALL)

    assert {row["kind"]: (row["published"], row["latest"]) for row in report["kinds"]} == {
        "robots.txt": (0, "1970-01-01T00:00:02Z"), "shards": (0, "1970-01-01T00:00:03Z"),
    }  # fmt: skip
    assert [row["file"] for row in report["shards"]] == ["posts-1.xml"]


def test_engines_are_told_apart_most_requests_first() -> None:
    facts = Facts([(SHARD, 1_000)])
    found = crawls(facts, request(2_000))
    for at_ms in (5_000, 6_000):
        assert found.fetched("Bingbot", request(at_ms))
        found.take("Bingbot", request(at_ms))

    assert found.engines() == ["Bingbot", "Googlebot"]
    assert told(found)["p50_s"] == 1.0
    assert found.report("Bingbot", ALL)["shards"][0]["p50_s"] == 4.0


def test_the_histogram_has_fixed_columns() -> None:
    bounds = [bound * 1000 for bound in BOUNDS_S]
    urls = [f"{BASE}p/{n}" for n in range(len(bounds) + 1)]
    facts = Facts((), [(url, 1_000) for url in urls])
    delays = [*bounds, bounds[-1] + 1]

    row = told(crawls(facts, *(request(1_000 + d, u) for u, d in zip(urls, delays, strict=True))),
               "pages")  # fmt: skip

    assert row["histogram"] == [1] * (len(BOUNDS_S) + 1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sitemap.xml", "index"), ("sitemap-2.xml", "index"), ("robots.txt", "robots.txt"),
        ("atom.xml", "feeds"), ("posts-1.xml", "shards"), ("posts-2025-11.xml.gz", "shards"),
        ("sitemap-x-1.xml", "shards"),
    ],
)  # fmt: skip
def test_a_file_is_known_by_its_name(name: str, kind: str) -> None:
    assert kind_of(f"https://www.example.com/blog/{name}") == kind


@pytest.mark.parametrize(
    ("values", "share", "wanted"),
    [([5], 0.5, 5), ([1, 2], 0.5, 1), ([1, 2, 3], 0.5, 2), ([*range(1, 101)], 0.95, 95),
     ([*range(1, 21)], 0.95, 19), ([1, 9], 0.95, 9)],
)  # fmt: skip
def test_a_percentile_is_the_nearest_rank(values: Sequence[int], share: float, wanted: int) -> None:
    assert percentile(values, share) == wanted


times = st.lists(st.integers(0, 50), max_size=8)


@given(times, times, times, st.randoms())
def test_any_order_of_lines_tells_the_same_as_a_plain_search(
    of_file: list[int], of_page: list[int], fetches: list[int], some: Any
) -> None:
    facts = Facts([(SHARD, t) for t in of_file], [(PAGE, t) for t in of_page])
    requests = [request(t, url) for t in fetches for url in (SHARD, PAGE)]
    some.shuffle(requests)

    report = crawls(facts, *requests).report(BOT, ALL)

    found = {row["kind"]: row for row in report["kinds"]}
    for kind, published, ends in (("shards", of_file, True), ("pages", of_page, False)):
        delays = []
        for at in sorted(set(published)):
            until = min((t for t in published if t > at), default=99) if ends else 99
            after = [t for t in fetches if at < t <= until]
            delays += [min(after) - at] if after else []
        row = found.get(kind, {"published": 0, "fetched": 0, "p50_s": None, "histogram": [0]})
        assert (row["published"], row["fetched"]) == (len(set(published)), len(delays))
        assert sum(row["histogram"]) == len(delays)
        assert row["p50_s"] == (percentile(sorted(delays), 0.5) / 1000 if delays else None)
    json.dumps(report)
