"""Several statements of one page become one, the same in any order, and nothing goes unsaid."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import pytest

from shared.events.event import Event, parse
from shared.events.event_fields import EventRules
from shared.events.plain_page import PlainPage
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.sitemap.urls import Base
from tests.unit.extensions import LOC
from worker.reconcile.deduplication import Deduplication, Dropped, Statement
from worker.reconcile.event_mapping import Remark
from worker.reconcile.statement_spool import StatementSpool

RULES = EventRules(
    Base.parse("https://www.example.com/"), frozenset({"pages", "posts", "news"}),
    news=frozenset({"news"}), deprecated=True,
)  # fmt: skip
BEGAN = 1_795_256_400_000


def stated(**members: Any) -> Event:
    return parse({"type": "upsert", "loc": LOC, **members}, RULES)


def united(
    *events: Event, most: int = 1_000_000, silent: frozenset[str] = frozenset()
) -> tuple[Event, list[Dropped]]:
    page = Deduplication(BEGAN, most)
    for number, event in enumerate(events):
        page.add(Statement(event, f"s.xml#{number}", silent))
    whole, dropped = page.result()
    return whole.event, dropped


def in_any_order(*events: Event) -> tuple[Event, set[Dropped]]:
    found = [united(*order) for order in permutations(events)]
    assert len({event.dump() for event, _ in found}) == 1
    assert len({frozenset(dropped) for _, dropped in found}) == 1
    return found[0][0], set(found[0][1])


def video(number: int, **more: Any) -> dict[str, Any]:
    return {
        "thumbnail_loc": "https://c.example/t", "title": f"T{number}", "description": "D",
        "content_loc": f"https://c.example/{number}", **more,
    }  # fmt: skip


def article(title: str, day: str) -> dict[str, Any]:
    publication = {"name": "N", "language": "en"}
    return {"publication": publication, "publication_date": day, "title": title}


def links(**pairs: str) -> list[dict[str, str]]:
    return [{"hreflang": code, "href": href} for code, href in pairs.items()]


def test_images_and_videos_of_all_statements_are_taken_once() -> None:
    a, b, c = ({"loc": f"https://c.example/{name}"} for name in "abc")
    page, dropped = in_any_order(
        stated(images=[a, b], videos=[video(1)]), stated(images=[b, c], videos=[video(2)]), stated()
    )

    assert page.images == (a, b, c)
    assert [each["title"] for each in page.videos] == ["T1", "T2"]
    assert dropped == {Dropped("L10", "stated 3 times in different words: united")}


@pytest.mark.parametrize(
    ("dates", "newest"),
    [
        (["2026-01-02", None, "2026-01-01"], "2026-01-02"),
        (["2026-01-02", "2026-01-02T10:00:00Z", None], "2026-01-02T10:00:00Z"),
        (["2026-01-02T23:30:00-02:00", "2026-01-03T01:00:00Z"], "2026-01-03T01:30:00Z"),
    ],
)
def test_the_newest_date_is_taken_and_none_loses_to_any(
    dates: list[str | None], newest: str
) -> None:
    """PROTOCOL M3."""
    page, _ = in_any_order(*(stated(lastmod=date) for date in dates))

    assert page.lastmod == newest


def test_what_is_stated_once_is_taken_and_what_contradicts_itself_is_named() -> None:
    page, dropped = in_any_order(
        stated(priority="0.5", changefreq="daily", section="posts", id="7"),
        stated(priority="0.7"),
        stated(changefreq="daily", section="pages", id="8"),
    )

    assert (page.priority, page.changefreq, page.section, page.id) == (None, "daily", None, None)
    assert {each.detail for each in dropped if "differ:" in each.detail} == {
        f"several {name} that differ: none was taken" for name in ("priority", "section", "id")
    }


def test_alternates_are_united_and_contradicting_ones_left_out_by_their_code() -> None:
    """PROTOCOL H5."""
    page, dropped = in_any_order(
        stated(alternates=links(en=LOC, de="https://www.example.com/de")),
        stated(alternates=links(en=LOC, fr="https://www.example.com/fr")),
        stated(alternates=links(de="https://www.example.com/de2")),
    )

    assert page.alternates == (("en", LOC), ("fr", "https://www.example.com/fr"))
    assert Dropped("H5", "alternates left out: de with several addresses") in dropped


def test_the_languages_of_a_group_are_united() -> None:
    page, dropped = in_any_order(
        stated(group="g", lang="en"), stated(group="g", lang=["x-default", "de"]),
        stated(alternates=links(en=LOC)),
    )  # fmt: skip

    assert (page.group, page.lang, page.alternates) == ("g", ("de", "en", "x-default"), ())
    assert Dropped("H2", "alternates left out: the page is in a group") in dropped


def test_of_two_articles_the_newest_is_taken_and_the_other_named() -> None:
    page, dropped = in_any_order(
        stated(news=article("old", "2026-11-20")), stated(news=article("new", "2026-11-21")),
        stated(news=article("other", "2026-11-19")),
    )  # fmt: skip

    assert page.news is not None
    assert page.news["title"] == "new"
    assert Dropped("W3", "news left out: of several articles the newest was taken") in dropped


def test_equal_statements_are_one_without_a_word() -> None:
    event = stated(lastmod="2026-01-01", images=[{"loc": "https://c.example/1"}])

    assert united(event, event) == (event, [])


def test_statements_of_an_older_version_do_not_count() -> None:
    older = stated(version=1, priority="0.1", images=[{"loc": "https://c.example/1"}])
    newer = stated(version=2, priority="0.2")

    assert in_any_order(older, newer) == (newer, set())
    assert in_any_order(older, stated(priority="0.3"))[0].priority == "0.3"


def test_what_exceeds_a_limit_is_counted_and_those_that_stand_first_are_kept() -> None:
    """PROTOCOL V11, I1: of a thousand statements with thirty images each."""
    events = [
        stated(images=[{"loc": f"https://c.example/{place:02}-{n:04}"} for place in range(30)])
        for n in range(1_000)
    ]
    random.Random(3).shuffle(events)
    page, dropped = united(*events)

    assert [image["loc"][18:20] for image in page.images] == ["00"] * 1_000
    assert len({image["loc"] for image in page.images}) == 1_000
    (said,) = [each for each in dropped if each.rule == "I1"]
    assert int(said.detail.split()[0]) >= 29_000


def test_a_page_that_grows_too_large_loses_its_last_videos_by_number() -> None:
    """PROTOCOL F7."""
    events = [stated(videos=[video(n, tags=["x" * 1_000] * 30)]) for n in range(20)]
    page, dropped = united(*events, most=200_000)
    entry = Entry(LOC, videos=page.videos)

    assert len(fragments.render(entry)) <= 200_000
    assert len(fragments.render(entry)) > 160_000
    said = f"{20 - len(page.videos)} videos left out: the page may take 200000 bytes"
    assert Dropped("F7", said) in dropped


def test_what_one_source_has_a_place_for_is_no_longer_silent() -> None:
    page = Deduplication(BEGAN, 1_000_000)
    page.add(Statement(stated(), "a.txt#1", frozenset({"images", "lastmod"})))
    page.add(Statement(stated(lastmod="2026-01-01"), "s.xml#1", frozenset({"images"})))

    assert page.result()[0].silent == {"images"}


def test_the_spool_gives_each_page_once_however_far_apart_it_is_stated() -> None:
    dice, said = random.Random(7), list[Remark]()
    events = [
        parse({"type": "upsert", "loc": f"https://www.example.com/{n}", **more}, RULES)
        for n in range(2_000)
        for more in ({"lastmod": "2026-01-01"}, {"priority": "0.5"})[: 1 + (n % 3 == 0)]
    ]
    dice.shuffle(events)
    with StatementSpool(BEGAN, 1_000_000) as spool:
        for number, event in enumerate(events):
            page = PlainPage.of(event) if number % 2 else event
            spool.add(page or event, f"s.xml#{number}", frozenset())
        found = list(spool.pages(said.append))

    pages = [page for some in found for page in some.pages]
    assert {page.loc for page in pages} == {event.loc for event in events}
    assert len(pages) == 2_000
    twice = {page.loc for some in found if some.repeated for page in some.pages}
    assert sum(some.repeated for some in found) == len(twice)
    assert twice == {f"https://www.example.com/{n}" for n in range(0, 2_000, 3)} == {
        each.loc for each in said
    }  # fmt: skip
    assert all((page.priority is not None) == (page.loc in twice) for page in pages)
    assert all(page.lastmod == "2026-01-01" for page in pages)
