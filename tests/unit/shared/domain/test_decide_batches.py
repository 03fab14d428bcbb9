"""Of all that a batch decides, only its net changes are left to apply."""

from __future__ import annotations

from dataclasses import replace

from shared.domain.page_record import Arrival
from tests.unit.decided import NOW, Site, gone, up


def test_what_changed_and_changed_back_in_one_batch_leaves_no_fragment() -> None:
    site = Site()
    site.take(up("a", 1))
    site.batch([up("a", 2, day=2), up("a", 3)])
    (op,) = site.ops
    site.take(up("a", 2, day=2))

    assert op.fragment is None
    assert site.days == {"a": 1}


def test_what_was_deleted_and_put_back_in_one_batch_leaves_no_fragment() -> None:
    site = Site()
    site.take(up("a", 1))
    site.batch([gone("a", 2), up("a", 3)])

    assert [op.fragment for op in site.ops] == [None]
    assert site.days == {"a": 1}


def test_what_moved_and_moved_back_in_one_batch_leaves_no_fragment() -> None:
    site = Site()
    site.take(up("a", 1, section="posts"))
    site.batch([up("a", 2, section="pages"), up("a", 3, section="posts")])

    assert [op.fragment for op in site.ops] == [None]
    assert site.sections == {"a": "posts"}


def test_what_was_added_and_deleted_in_one_batch_leaves_a_tombstone_only() -> None:
    site = Site()
    site.batch([up("a", 1), gone("a", 2)])
    (op,) = site.ops

    assert (op.before, op.fragment) == (b"", None)
    assert site.listed == {}


def test_an_event_heard_twice_at_one_moment_changes_no_record() -> None:
    site, event = Site(), up("a", 1, id="7")
    for _ in range(2):
        site.batch([event], Arrival(NOW, 0))

    assert site.ops == []


def test_events_of_one_millisecond_keep_their_sequence() -> None:
    site = Site()
    site.batch([up("a", day=2)], Arrival(NOW, 1))
    (decision,) = site.batch([up("a", day=1)], Arrival(NOW, 0))

    assert not decision.changed
    assert site.days == {"a": 2}


def test_an_arrival_is_read_from_the_id_in_the_inbox() -> None:
    assert Arrival(NOW, 12) == Arrival.of(f"{NOW}-12")


def test_a_batch_about_many_pages_touches_each_once() -> None:
    site = Site()
    site.batch(replace(up(f"{i % 10}", i), lastmod=None) for i in range(100))

    assert len(site.ops) == len(site.listed) == 10
