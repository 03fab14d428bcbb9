"""Whatever the order in which events arrive, and however often, the same pages end up listed."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.events.event import Event
from tests.unit.decided import NOW, PREFIX, SECTIONS, Site, gone, up

NAMES = ["a", "b", "c"]
NUMBERS = {1: "7", 2: "8", 3: "9"}


def change(name: str, version: int, kind: str, day: int, section: str | None) -> Event:
    if kind == "delete":
        return gone(name, version)
    away: dict[str, Any] = {"noindex": {"noindex": True}, "other": {"canonical": PREFIX + "other"}}
    return up(name, version, day=day, section=section, **away.get(kind, {}))


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Pages without ids: every version of a page once, all of its upserts naming a section or none.

    The versions lie around the time of arrival, where ties are not all the same.
    """
    named = {name: draw(st.booleans()) for name in NAMES}
    changes = draw(
        st.lists(
            st.tuples(
                st.sampled_from(NAMES),
                st.integers(-9, 9).map(lambda n: NOW + n * 997),
                st.sampled_from(["upsert", "upsert", "upsert", "delete", "noindex", "other"]),
                st.integers(1, 3),
                st.sampled_from(sorted(SECTIONS)),
            ),
            min_size=1,
            max_size=12,
            unique_by=lambda drawn: drawn[:2],
        )
    )
    changes.sort(key=lambda drawn: drawn[1])
    return [change(*drawn[:4], drawn[4] if named[drawn[0]] else None) for drawn in changes]


@st.composite
def careers(draw: st.DrawFn) -> list[Event]:
    """Pages with ids, as a CMS has them: one URL each, and never two pages at one URL.

    Pages are edited, moved to a free URL, swapped, deleted by id with or without their URL, hidden;
    URLs that were left are used again by others.
    """
    homes: dict[int, str] = {}
    events: list[Event] = []

    def say(number: int, name: str, **members: Any) -> None:
        day = draw(st.integers(1, 3))
        events.append(up(name, len(events) + 1, id=NUMBERS[number], day=day, **members))
        homes[number] = name

    for _ in range(draw(st.integers(1, 8))):
        number, other = draw(st.permutations(list(NUMBERS)))[:2]
        free = [name for name in NAMES if name not in homes.values()]
        action = draw(st.sampled_from(["put", "put", "swap", "delete", "hide"]))
        if action == "swap" and number in homes and other in homes:
            mine, theirs = homes[number], homes[other]
            say(number, theirs)
            say(other, mine)
        elif action == "delete" and number in homes:
            name = homes.pop(number) if draw(st.booleans()) else None
            homes.pop(number, None)
            events.append(gone(name, len(events) + 1, id=NUMBERS[number]))
        elif action == "hide" and number in homes:
            say(number, homes[number], noindex=True)
            homes.pop(number)
        elif names := [*free, *filter(None, [homes.get(number)])]:
            say(number, draw(st.sampled_from(names)))
    return events


def arrive(data: st.DataObject, events: list[Event]) -> Site:
    """A site that hears of the events in any order, some of them twice, in batches of any size."""
    doubles = data.draw(st.lists(st.sampled_from(events), max_size=4)) if events else []
    left = data.draw(st.permutations(events + doubles))
    site = Site()
    while left:
        size = data.draw(st.integers(1, len(left)))
        site.batch(left[:size])
        left = left[size:]
    return site


@settings(max_examples=300)
@given(histories(), st.data())
def test_pages_end_as_their_latest_versions_say(events: list[Event], data: st.DataObject) -> None:
    in_order = Site()
    in_order.take(*events)

    assert in_order.listed == arrive(data, events).listed


@settings(max_examples=300)
@given(histories())
def test_of_each_page_the_latest_version_is_what_is_listed(events: list[Event]) -> None:
    site = Site()
    site.take(*events)
    latest = {event.loc: event for event in events}
    listed = {
        loc: event.lastmod
        for loc, event in latest.items()
        if event.type == "upsert" and not event.noindex and not event.canonical
    }

    assert listed == {entry.loc: entry.lastmod for entry in site.entries.values()}


@settings(max_examples=500)
@given(careers(), st.data())
def test_pages_with_ids_end_where_their_cms_has_them(
    events: list[Event], data: st.DataObject
) -> None:
    in_order = Site()
    in_order.take(*events)
    latest = {event.id: event for event in events}
    homes = {
        event.loc: event.lastmod
        for event in latest.values()
        if event.type == "upsert" and not event.noindex
    }

    assert homes == {entry.loc: entry.lastmod for entry in in_order.entries.values()}
    assert in_order.listed == arrive(data, events).listed
