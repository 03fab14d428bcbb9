"""The rule of the shrink guard, at its exact boundaries (RELIABILITY T32)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.domain.shrink_guard import Peak, ShrinkRule

NOW = 1_800_000_000
NONE = Peak(0, 0)
counts = st.integers(0, 50_000)
shares = st.integers(0, 100).map(lambda percent: percent / 100)
instants = st.integers(0, 2 * NOW)


@given(shares, counts, counts, st.integers(1, 1000))
def test_held_is_what_leaves_less_than_the_rest_and_drops_the_least(
    share: float, before: int, after: int, least: int
) -> None:
    verdict = ShrinkRule.of(share, 10, least).judge(before, NONE, after, NOW)

    percent = round(share * 100)
    leaves_less = after * 100 < (100 - percent) * before  # in whole numbers, which do not round
    assert verdict.holds == (leaves_less and before - after >= least)


@pytest.mark.parametrize("share", [0.1, 0.29, 0.3, 0.5, 0.7, 0.9])
def test_the_share_itself_may_go_and_one_page_more_may_not(share: float) -> None:
    rule, before = ShrinkRule.of(share, 10, 1), 1000
    most = int(Fraction(str(share)) * before)

    assert not rule.judge(before, NONE, before - most, NOW).holds
    assert rule.judge(before, NONE, before - most - 1, NOW).holds


def test_fewer_pages_than_the_least_may_always_go() -> None:
    rule = ShrinkRule.of(0.5, 10, 50)

    assert not rule.judge(49, NONE, 0, NOW).holds
    assert rule.judge(50, NONE, 0, NOW).holds
    assert not rule.judge(60, NONE, 11, NOW).holds


@given(counts, counts, counts, instants, instants)
def test_a_share_of_one_lets_everything_go(
    published: int, peak: int, after: int, since: int, now: int
) -> None:
    assert not ShrinkRule.of(1, 10, 1).judge(published, Peak(peak, since), after, now).holds


def test_a_drip_is_measured_against_the_first_of_the_window() -> None:
    rule, published, peak = ShrinkRule.of(0.5, 10, 50), 1000, NONE
    for step in range(1, 1000):
        verdict = rule.judge(published, peak, published - 1, NOW + step // 2)
        if verdict.holds:
            break
        published, peak = published - 1, verdict.peak

    assert published == 500
    assert peak.urls == 1000


def test_the_window_passes_to_the_second() -> None:
    rule, peak = ShrinkRule.of(0.5, 10, 50), Peak(1000, NOW)

    assert rule.judge(500, peak, 499, NOW + 599).holds
    after = rule.judge(500, peak, 499, NOW + 600)
    assert not after.holds
    assert after.peak == (500, NOW + 600)


def test_a_publish_that_lists_more_pages_begins_the_window_anew() -> None:
    verdict = ShrinkRule.of(0.5, 10, 50).judge(100, Peak(100, NOW), 150, NOW + 60)

    assert (verdict.holds, verdict.peak) == (False, (150, NOW + 60))


@given(st.integers(50, 50_000), st.integers(0, 50_000), instants, instants)
def test_no_clock_lets_a_batch_of_everything_go(
    published: int, peak: int, since: int, now: int
) -> None:
    assert ShrinkRule.of(0.5, 10, 50).judge(published, Peak(peak, since), 0, now).holds


@given(st.integers(-(10**9), 10**9))
def test_no_clock_makes_a_peak_count_for_more_than_two_windows(jump: int) -> None:
    """The first publish after a jump says when the window began by the new clock."""
    rule, now = ShrinkRule.of(0.5, 10, 50), NOW + jump
    peak = rule.judge(900, Peak(1000, NOW), 899, now).peak

    assert abs(now - peak.since) < 600
    assert peak.since <= now
    assert not rule.judge(500, Peak(1000, NOW), 499, max(now, NOW) + 1200).holds


@given(st.integers(0, 1000))
def test_what_moved_elsewhere_is_not_dropped(moved: int) -> None:
    rule = ShrinkRule.of(0.5, 10, 1)
    verdict = rule.judge(1000, NONE, 1000 - moved, NOW, moved=moved)

    assert not verdict.holds
    assert verdict.peak.urls == 1000 - moved
    if moved < 1000:
        assert rule.judge(1000, NONE, 0, NOW, moved=moved).holds


@given(st.integers(100, 1000), st.integers(0, 1000))
def test_what_is_confirmed_is_what_the_next_is_measured_against(confirmed: int, after: int) -> None:
    rule, peak = ShrinkRule.of(0.5, 10, 50), Peak(1000, NOW - 60)
    verdict = rule.judge(1000, peak, after, NOW, confirmed=confirmed)

    assert verdict.holds == (after * 2 < confirmed and confirmed - after >= 50)
    assert verdict.reference == confirmed
