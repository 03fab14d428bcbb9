"""Pages that were found broken leave, come back as they were, and lose against any newer event."""

from __future__ import annotations

from typing import Any

import pytest

from shared.domain.page_record import PageRecord
from shared.events.event import RELIST, UNLIST, Event, SchemaError
from shared.sitemap import fragments
from tests.unit.decided import PREFIX, Site, gone, up

A = PREFIX + "a"


def record(site: Site) -> PageRecord:
    return PageRecord.unpack(site.pages[A])


def out(site: Site, **members: Any) -> Event:
    return Event(UNLIST, A, stamp=record(site).stamp, why="answers 404", **members)


def back(site: Site, fragment: bytes, **members: Any) -> Event:
    stamp = record(site).stamp
    return Event(RELIST, A, stamp=stamp, why="200", entry=fragment.decode(), **members)


def listing(*events: Event) -> tuple[Site, bytes]:
    site = Site()
    site.take(*events)
    return site, site.listed[A][1]


def test_a_broken_page_leaves_with_its_reason_and_comes_back_as_it_was() -> None:
    site, fragment = listing(up("a", 1, id="7", day=3))
    before = record(site)

    (left,) = site.take(out(site))
    assert (left, A in site.listed) == ((True, "unlisted: answers 404"), False)
    (returned,) = site.take(back(site, fragment))
    assert returned == (True, "listed again: 200")
    assert site.listed[A][1] == fragment
    assert record(site) == before


@pytest.mark.parametrize("version", [None, 1, 2])
def test_an_event_that_is_no_older_lists_an_unlisted_page(version: int | None) -> None:
    site, fragment = listing(up("a", 1, day=3))
    site.take(out(site))
    late = back(site, fragment)

    site.take(up("a", version, day=4))
    assert A in site.listed
    assert not site.take(late)[0].changed
    assert b"2026-01-04" in site.listed[A][1]


def test_an_older_event_does_not() -> None:
    site, _ = listing(up("a", 5, day=3))
    site.take(out(site))

    assert not site.take(up("a", 4, day=4))[0].changed
    assert A not in site.listed


def test_nor_does_an_older_one_of_another_id() -> None:
    site, _ = listing(up("a", 5, id="7"))
    site.take(out(site))

    assert not site.take(up("a", 4, id="8"))[0].changed


@pytest.mark.parametrize("event", [gone("a", 1), gone("a"), gone(None, 2, id="7")])
def test_a_page_that_was_deleted_since_does_not_come_back(event: Event) -> None:
    site, fragment = listing(up("a", 1, id="7"))
    site.take(out(site))
    late = back(site, fragment)

    site.take(event)
    assert not site.take(late)[0].changed
    assert A not in site.listed


def test_a_look_at_an_earlier_state_of_the_page_changes_nothing() -> None:
    site, fragment = listing(up("a", 1))
    late, again = out(site), back(site, fragment)
    site.take(up("a", 2, day=2))

    assert not site.take(late)[0].changed
    assert not site.take(again)[0].changed
    assert b"2026-01-02" in site.listed[A][1]


@pytest.mark.parametrize(
    "members",
    [
        {"type": UNLIST}, {"type": UNLIST, "stamp": -1}, {"type": UNLIST, "stamp": 1 << 64},
        {"type": UNLIST, "stamp": 1, "entry": "x"}, {"type": RELIST, "stamp": 1},
        {"type": RELIST, "stamp": 1, "entry": "<url>"},
        {"type": RELIST, "stamp": 1, "entry": f"<url><loc>{A}</loc><b></url>\n"},
        {"type": RELIST, "stamp": 1, "entry": f"<url><loc>{A}</loc></url>\n", "group": "ab"},
        {"type": RELIST, "stamp": 1, "entry": f"<url><loc>{A}b</loc></url>\n"},
    ],
)  # fmt: skip
def test_an_event_of_ours_that_we_did_not_write_is_not_read(members: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        Event.load(Event(loc=A, **members).dump())


def test_an_event_of_ours_is_read_as_it_was_written() -> None:
    entry = fragments.render_plain(A, "2026-01-01", None, None).decode()
    for event in (
        Event(UNLIST, A, stamp=7, why="answers 404"),
        Event(RELIST, A, stamp=7, why="200", entry=entry),
        Event(RELIST, A, stamp=7, entry=entry, group="0123456789abcdef", lang=("de",)),
    ):
        assert Event.load(event.dump()) == event
