"""The packed records of pages and ids, and the order of events about one page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.domain.page_record import (
    BUCKETS,
    MAX_SECTIONS,
    PLACE_BYTES,
    Claim,
    PageRecord,
    Place,
    bucket_of,
    digest_of,
    field_of,
    owner_of,
    stamp,
)
from shared.events.event_fields import MAX_AHEAD_MS, MAX_VERSION
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from tests.unit.strategies import locs

MAX_SHARD = (1 << 20) - 1
LATEST_MS = (1 << 47) - 1


def _not_nobody(owner: bytes) -> bool:
    return owner != bytes(8)


digests = st.just(b"") | st.binary(min_size=8, max_size=8).filter(_not_nobody)
places = st.builds(
    Place, st.integers(0, MAX_SECTIONS), st.integers(0, MAX_SHARD), st.integers(0, 0xFFFF)
)
lengths = st.just(0) | st.integers(0, (1 << 24) - 1)
located = st.builds(
    PageRecord,
    st.none() | places,
    lengths,
    st.integers(0, (1 << 64) - 1),
    st.binary(min_size=5, max_size=5),
    digests,
    digests,
)
times = st.integers(0, LATEST_MS)


@given(located)
def test_unpacking_undoes_packing(page: PageRecord) -> None:
    stored = page.pack()

    assert page == PageRecord.unpack(stored)
    assert stored[PLACE_BYTES:] == page.tail()
    assert len(stored) == (38 if page.group else 22 + len(page.owner))


@given(places)
def test_a_place_takes_six_bytes(place: Place) -> None:
    assert len(place.pack()) == PLACE_BYTES == 6


@given(located)
def test_whether_a_page_is_listed_is_told_from_its_record_alone(page: PageRecord) -> None:
    assert page.live == (page.length > 0) == PageRecord.was_live(page.pack())


def test_an_unknown_page_was_not_listed() -> None:
    assert not PageRecord.was_live(b"")
    assert not PageRecord.lists(b"", bytes(5), None)
    assert not PageRecord.lists(b"", b"", 0)


@given(located, st.binary(min_size=5, max_size=5), st.integers(0, 255))
def test_a_record_lists_a_content_in_a_section_as_its_members_say(
    page: PageRecord, other: bytes, section: int
) -> None:
    stored, place = page.pack(), page.place
    for digest in (page.digest, other):
        for asked in {section, place.section if place else section}:
            here = place is not None and place.section == asked
            if place is not None or not page.live:  # a listed page has a place
                assert PageRecord.lists(stored, digest, asked) == (
                    page.live and here and digest == page.digest
                )


@given(st.builds(Claim, st.integers(0, (1 << 64) - 1), st.just("") | locs))
def test_a_claim_is_read_as_it_was_stored(claim: Claim) -> None:
    assert claim == Claim.unpack(claim.pack())


@given(locs)
def test_bucket_and_field_keep_all_64_bits_of_a_digest(loc: str) -> None:
    digest = digest_of(loc)

    assert len(digest) == 8
    assert 0 <= bucket_of(digest) < BUCKETS
    assert digest == bucket_of(digest).to_bytes(2, "big") + field_of(digest)


@given(
    st.lists(
        st.tuples(st.sampled_from(["native", "ghost"]), st.just(""), locs, st.just("")),
        min_size=2,
        max_size=2,
        unique=True,
    )
)
def test_two_ids_have_two_owners(idents: list[tuple[str, str, str, str]]) -> None:
    one, other = (owner_of(*ident) for ident in idents)

    assert len(one) == len(other) == 8
    assert one != other


def test_source_kind_id_and_locale_are_kept_apart() -> None:
    parts = [
        owner_of("a", "b", "c", "d"), owner_of("ab", "", "c", "d"), owner_of("a", "bc", "", "d"),
        owner_of("a", "b", "cd", ""), owner_of("", "a", "b", "cd"), owner_of("a", "b", "c", ""),
    ]  # fmt: skip

    assert len(set(parts)) == len(parts)


@given(st.integers(0, MAX_VERSION), times, st.integers(0, 1 << 40))
def test_a_stamp_fits_into_its_eight_bytes(version: int, arrived: int, sequence: int) -> None:
    for given_version in (None, version):
        PageRecord(None, 1, stamp(given_version, arrived, sequence), bytes(5), b"").pack()


@given(st.integers(0, MAX_VERSION), st.integers(0, MAX_VERSION), times, times)
def test_the_later_version_wins_whenever_it_arrives(
    one: int, other: int, first: int, second: int
) -> None:
    if one == other:
        other = (one + 1) % MAX_VERSION
    first, second = max(first, one - MAX_AHEAD_MS), max(second, other - MAX_AHEAD_MS)

    assert (one < other) == (stamp(one, first, 0) < stamp(other, second, 0))


@given(times, st.integers(1, 1 << 40))
def test_a_version_far_ahead_of_its_arrival_is_none(arrived: int, more: int) -> None:
    """RELIABILITY T37: it would hold its page against every later event."""
    farthest = arrived + MAX_AHEAD_MS

    assert stamp(farthest, arrived, 0) > stamp(None, arrived, 0)
    assert stamp(farthest + more, arrived, 0) == stamp(None, arrived, 0)


@given(st.integers(0, MAX_VERSION - 65_535), st.integers(0, 65_534), st.integers(1, 65_535))
def test_among_equal_versions_the_later_arrival_wins(version: int, delay: int, more: int) -> None:
    """WEBHOOKS 5.3: the clocks of senders tick in seconds."""
    earlier, later = version + delay, version + delay + more

    assert stamp(version, earlier, 0) < stamp(version, later, 0)


@given(st.integers(0, MAX_VERSION), times, times)
def test_an_equal_version_never_loses_by_arriving_later(version: int, one: int, other: int) -> None:
    earlier, later = sorted((one, other))

    assert stamp(version, earlier, 0) <= stamp(version, later, 0)


@given(times, times, st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_without_versions_events_are_ordered_by_arrival_then_sequence(
    one: int, other: int, first: int, second: int
) -> None:
    assert ((one, first) < (other, second)) == (
        stamp(None, one, first) < stamp(None, other, second)
    )


def test_a_flood_within_one_millisecond_does_not_reach_into_the_next() -> None:
    assert stamp(None, 1_000, 1 << 20) < stamp(None, 1_001, 0)


@pytest.mark.parametrize(("version", "wins"), [(999, False), (1_001, True)])
def test_events_with_and_without_versions_share_one_clock(version: int, wins: bool) -> None:
    assert wins == (stamp(version, 5_000_000, 0) > stamp(None, 1_000, 7))


@given(locs)
def test_the_length_of_every_fragment_fits_into_its_three_bytes(loc: str) -> None:
    fragment = fragments.render(Entry(loc))
    page = PageRecord(Place(1, 1, 0), len(fragment), 1, fragments.digest(fragment), b"")

    assert PageRecord.lists(page.pack(), fragments.digest(fragment), 1)
