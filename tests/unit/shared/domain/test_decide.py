"""What one event means for the page it concerns, scenario by scenario (DESIGN 3, WEBHOOKS 5)."""

from __future__ import annotations

import itertools

import pytest

from shared.domain.entries.news_entries import is_current
from shared.domain.page_record import Arrival
from shared.events.event import Event
from shared.sitemap.w3c_dates import FARTHEST_ZONE_MS, epoch_ms
from tests.unit.decided import NOW, PREFIX, Site, gone, up

HISTORIES = {
    "a page is added": ([up("a", 1)], {"a": 1}),
    "a later version replaces": ([up("a", 1), up("a", 2, day=2)], {"a": 2}),
    "an older version loses": ([up("a", 2, day=2), up("a", 1)], {"a": 2}),
    "an equal version that arrives later wins": ([up("a", 1), up("a", 1, day=2)], {"a": 2}),
    "without versions the last to arrive wins": ([up("a"), up("a", day=2)], {"a": 2}),
    "a delete removes": ([up("a", 1), gone("a", 2)], {}),
    "an older delete does not": ([up("a", 2), gone("a", 1)], {"a": 1}),
    "a late update does not resurrect": ([up("a", 1), gone("a", 3), up("a", 2)], {}),
    "nor where the delete came first of all": ([gone("a", 2), up("a", 1)], {}),
    "a newer update does": ([up("a", 1), gone("a", 2), up("a", 3, day=3)], {"a": 3}),
    "equal content still moves the version": (
        [up("a", 10, day=1), up("a", 30, day=1), up("a", 20, day=2)], {"a": 1}
    ),
    "also against a delete between the two": ([up("a", 10), up("a", 30), gone("a", 20)], {"a": 1}),
    "noindex removes": ([up("a", 1), up("a", 2, noindex=True)], {}),
    "and lets back in": ([up("a", 1), up("a", 2, noindex=True), up("a", 3)], {"a": 1}),
    "another canonical removes": ([up("a", 1), up("a", 2, canonical=PREFIX + "b")], {}),
    "one on another site removes": ([up("a", 1), up("a", 2, canonical="https://b.c/a")], {}),
    "a page that answers 404 goes": ([up("a", 1), up("a", 2, status=404)], {}),
    "one that answers 410 too": ([up("a", 1), up("a", 2, status=410)], {}),
    "one that moved for good goes": (
        [up("a", 1), up("a", 2, status=308, redirect_to=PREFIX + "b")], {}
    ),
    "also without a status": ([up("a", 1), up("a", 2, redirect_to="https://b.c/")], {}),
    "one that is lent to another address stays": (
        [up("a", 1), up("a", 2, day=2, status=302, redirect_to=PREFIX + "b")], {"a": 2}
    ),
    "one that answers 503 stays": ([up("a", 1), up("a", 2, day=2, status=503)], {"a": 2}),
    "and comes back with 200": ([up("a", 1, status=404), up("a", 2, status=200)], {"a": 1}),
    "a page that is its own canonical stays": ([up("a", 1, canonical=PREFIX + "a")], {"a": 1}),
    "a page moves by its id": ([up("a", 1, id="7"), up("b", 2, id="7")], {"b": 1}),
    "moves heard of in reverse": ([up("b", 2, id="7"), up("a", 1, id="7")], {"b": 1}),
    "a page moves away and back": (
        [up("a", 1, id="7"), up("b", 2, id="7"), up("a", 3, id="7", day=3)], {"a": 3}
    ),
    "a delete by id alone": ([up("a", 1, id="7"), gone(None, 2, id="7")], {}),
    "a delete by id after a move": (
        [up("a", 1, id="7"), up("b", 2, id="7"), gone(None, 3, id="7")], {}
    ),
    "a delete with the old loc finds the page by its id": (
        [up("a", 1, id="7"), up("b", 2, id="7"), gone("a", 3, id="7")], {}
    ),
    "a late update does not resurrect what was deleted by id": (
        [up("a", 1, id="7"), gone(None, 3, id="7"), up("b", 2, id="7")], {}
    ),
    "nor a delete by id heard of before the page": (
        [gone(None, 2, id="7"), up("a", 1, id="7")], {}
    ),
    "noindex under a new loc removes the old": (
        [up("a", 1, id="7"), up("b", 2, id="7", noindex=True)], {}
    ),
    "a delete by an unknown id": ([up("a", 1), gone(None, 2, id="7")], {"a": 1}),
    "a freed URL is reused": (
        [up("a", 1, id="7"), gone(None, 2, id="7"), up("a", 3, id="8", day=8)], {"a": 8}
    ),
    "and its former page is deleted by id again": (
        [up("a", 1, id="7"), gone(None, 2, id="7"), up("a", 3, id="8", day=8),
         gone(None, 4, id="7")], {"a": 8},
    ),
    "or by id and loc": (
        [up("a", 1, id="7"), up("a", 3, id="8", day=8), gone("a", 4, id="7")], {"a": 8}
    ),
    "a page that moved away leaves its successor alone": (
        [up("a", 1, id="7"), up("a", 3, id="8", day=8), up("b", 2, id="7")], {"a": 8, "b": 1}
    ),
    "equal ids of two locales are two pages": (
        [up("a", 1, id="7"), up("b", 2, id="7", locale="de")], {"a": 1, "b": 1}
    ),
    "whoever knows only the loc may delete a page with an id": (
        [up("a", 1, id="7"), gone("a", 2)], {}
    ),
    "and may change it without taking it from its id": (
        [up("a", 1, id="7"), up("a", 2, day=2), gone(None, 3, id="7")], {}
    ),
    "what came back without an id is not taken along when the id moves": (
        [up("a", 1, id="7"), gone("a", 2), up("a", 3, day=3), up("b", 4, id="7")], {"a": 3, "b": 1}
    ),
}  # fmt: skip

ORDERS = list(itertools.permutations(range(4)))


@pytest.mark.parametrize(("events", "days"), HISTORIES.values(), ids=HISTORIES)
def test_a_history_ends_in(events: list[Event], days: dict[str, int]) -> None:
    site = Site()
    site.take(*events)

    assert days == site.days


@pytest.mark.parametrize(("events", "days"), HISTORIES.values(), ids=HISTORIES)
def test_a_history_ends_the_same_in_one_batch_and_when_every_event_comes_twice(
    events: list[Event], days: dict[str, int]
) -> None:
    at_once, doubled = Site(), Site()
    at_once.batch(events)
    doubled.take(*(event for event in events for _ in range(2)))

    assert days == at_once.days
    assert days == doubled.days


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_two_pages_that_swap_their_urls_end_swapped_in_any_order(order: tuple[int, ...]) -> None:
    events = [
        up("a", 1, id="7", day=7), up("b", 2, id="8", day=8),
        up("b", 3, id="7", day=7), up("a", 4, id="8", day=8),
    ]  # fmt: skip
    site = Site()
    site.take(*(events[i] for i in order))

    assert site.days == {"a": 8, "b": 7}


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_a_url_that_another_page_took_over_is_kept_by_it_in_any_order(
    order: tuple[int, ...],
) -> None:
    events = [
        up("a", 1, id="7", day=7), gone(None, 2, id="7"), up("a", 3, id="8", day=8),
        up("a", 4, id="8", day=9),
    ]  # fmt: skip
    site = Site()
    site.take(*(events[i] for i in order))

    assert site.days == {"a": 9}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_a_url_that_is_said_again_without_an_id_is_nobodys_in_any_order(
    order: tuple[int, ...],
) -> None:
    """Its old id was deleted before: whoever has it next may delete it."""
    events = [up("a", 1, id="7"), gone(None, 2, id="7"), up("a", 3)]
    site = Site()
    site.take(*(events[i] for i in order))
    assert site.days == {"a": 1}

    site.take(gone("a", 4, id="8"))

    assert site.days == {}


@pytest.mark.parametrize(
    ("before", "event", "decision"),
    [
        ([], up("a", 5), (True, "added")),
        ([up("a", 5)], up("a", 6, day=2), (True, "changed")),
        ([up("a", 5)], up("a", 6), (False, "same content")),
        ([up("a", 5)], up("a", 4, day=2), (False, "older than what is known of this URL")),
        ([up("a", 5)], gone("a", 4), (False, "older than what is known of this URL")),
        ([up("a", 5)], gone("a", 6), (True, "deleted")),
        ([], gone("a", 6), (False, "deleted, and it was not listed")),
        ([up("a", 5)], up("a", 6, noindex=True), (True, "noindex")),
        ([up("a", 5)], up("a", 6, canonical="https://b.c/"), (True, "not canonical")),
        ([up("a", 5, id="7")], up("a", 6, id="7"), (False, "same content")),
        ([up("a", 5, id="7")], up("a", 6, id="7", day=2), (True, "changed")),
        ([up("a", 5, id="7")], up("b", 6, id="7"), (True, "moved: added")),
        ([up("a", 5, id="7")], up("a", 4, id="7"), (False, "older than what is known of this id")),
        ([up("a", 5, id="7")], gone(None, 6, id="7"), (True, "deleted")),
        ([up("a", 5, id="7")], gone("a", 6, id="7"), (True, "deleted")),
        ([up("a", 5, id="7")], gone("b", 6, id="7"), (True, "deleted")),
        ([up("a", 5, id="7")], up("a", 6, id="7", noindex=True), (True, "noindex")),
        ([up("a", 5, id="7")], up("b", 6, id="7", noindex=True), (True, "noindex")),
        ([up("a", 5, id="7")], up("a", 6, id="7", canonical=PREFIX), (True, "not canonical")),
        ([up("a", 5, id="7")], gone("a", 6, id="8"),
         (False, "this URL belongs to another page by now")),
        ([], gone(None, 6, id="7"), (False, "no page with this id")),
    ],
)  # fmt: skip
def test_a_decision_says_why(before: list[Event], event: Event, decision: tuple[bool, str]) -> None:
    site = Site()
    site.take(*before)
    listed = dict(site.listed)

    assert [decision] == [each[:2] for each in site.take(event)]
    assert decision[0] == (listed != site.listed)


@pytest.mark.parametrize("late", [up("a", day=9), gone("a"), up("a", day=9, id="7")])
def test_an_event_that_waited_for_two_days_is_older_than_what_came_meanwhile(late: Event) -> None:
    """RELIABILITY T37: no stamp of today lies far ahead, though it does of the day before."""
    site = Site()
    waiting = Arrival(site.clock, 0)
    site.clock += 48 * 3_600_000
    site.take(up("a", day=2, id="7"))

    assert not site.batch([late], at=waiting)[0].changed
    assert site.days == {"a": 2}


def test_a_deleted_page_leaves_a_tombstone_in_its_place() -> None:
    site = Site()
    site.take(up("a", 1, section="posts"), gone("a", 2))
    site.take(up("a", 3))

    assert site.sections == {"a": "posts"}


@pytest.mark.parametrize(
    ("first", "then", "section"),
    [
        (None, None, "pages"),
        ("posts", None, "posts"),
        (None, "posts", "posts"),
        ("posts", "pages", "pages"),
        ("posts", "posts", "posts"),
    ],
)
@pytest.mark.parametrize("day", [1, 2])
def test_a_page_stays_in_its_section_until_another_is_named(
    first: str | None, then: str | None, section: str, day: int
) -> None:
    one_by_one, at_once = Site(), Site()
    events = [up("a", 1, section=first), up("a", 2, section=then, day=day)]
    one_by_one.take(*events)
    at_once.batch(events)

    assert {"a": section} == one_by_one.sections == at_once.sections
    assert {"a": day} == one_by_one.days == at_once.days


@pytest.mark.parametrize(
    ("lastmod", "listed"),
    [
        ("2026-11-21T10:20:30Z", True),
        ("2026-11-21T10:25:30Z", True),
        ("2026-11-21T10:25:31Z", False),
        ("2026-11-22", True),
        ("2026-11-23", False),
        ("9999-12-31T23:59:59Z", False),
        ("0001-01-01", True),
    ],
)
def test_a_lastmod_in_the_future_is_left_out(lastmod: str, listed: bool) -> None:
    """PROTOCOL M5; five minutes for the clocks of senders, 14 hours for the zone of a date."""
    site = Site()
    added, again = [
        site.batch([up("a", lastmod=lastmod)], Arrival(NOW, number))[0] for number in range(2)
    ]
    told = "" if listed else "; its lastmod lies in the future and is left out"

    assert (lastmod if listed else None) == site.entries["a"].lastmod
    assert (added.reason, again.reason) == (f"added{told}", f"same content{told}")


def test_a_date_is_today_as_soon_as_it_is_somewhere_on_earth() -> None:
    site, midnight = Site(), 1_795_305_600_000
    site.batch([up("early", lastmod="2026-11-22")], Arrival(midnight - FARTHEST_ZONE_MS - 1, 0))
    site.batch([up("close", lastmod="2026-11-22")], Arrival(midnight - FARTHEST_ZONE_MS, 0))

    assert {name: entry.lastmod for name, entry in site.entries.items()} == {
        "early": None,
        "close": "2026-11-22",
    }


@pytest.mark.parametrize("hints", [False, True])
def test_hints_are_listed_where_they_are_wanted_only(hints: bool) -> None:
    """PROTOCOL M8: off unless wanted, and then a change of them changes no bytes."""
    site = Site(hints=hints)
    (_, second) = site.take(up("a", 1), up("a", 2, changefreq="daily", priority="0.7"))
    entry = site.entries["a"]

    assert (("daily", "0.7") if hints else (None, None)) == (entry.changefreq, entry.priority)
    assert hints == second.changed


@pytest.mark.parametrize(
    ("date", "age_ms", "current"),
    [
        ("2026-11-21T10:20:30Z", -1, False),
        ("2026-11-21T10:20:30Z", 0, True),
        ("2026-11-21T10:20:30Z", 48 * 3_600_000 - 1, True),
        ("2026-11-21T10:20:30Z", 48 * 3_600_000, False),
        ("2026-11-21", -FARTHEST_ZONE_MS - 1, False),
        ("2026-11-21", -FARTHEST_ZONE_MS, True),
        ("2026-11-21", 48 * 3_600_000 - 1, True),
    ],
)
def test_an_article_is_news_from_its_publication_for_48_hours(
    date: str, age_ms: int, current: bool
) -> None:
    """PROTOCOL W4; of a date alone, as soon as it is that date somewhere."""
    article = {"publication_date": date}
    moment = epoch_ms(date)

    assert is_current(article, moment + age_ms) == current
