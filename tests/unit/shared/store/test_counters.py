"""How long events waited: read from classes, against the waits themselves."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.store.counting.counters import BOUNDS_MS, WaitHistogram, together

waits_ms = st.lists(st.integers(0, 2 * BOUNDS_MS[-1]), min_size=1, max_size=60)


def counted(ms: list[int]) -> WaitHistogram:
    """As commit_publish.lua counts: a wait is in the first class whose bound it does not exceed."""
    classes = [0] * (len(BOUNDS_MS) + 1)
    for each in ms:
        classes[bisect_left(BOUNDS_MS, each)] += 1
    return WaitHistogram(tuple(classes), sum(ms))


@given(waits_ms, st.floats(0.01, 1))
def test_a_percentile_lies_in_the_class_of_the_wait_at_that_rank(
    ms: list[int], share: float
) -> None:
    ordered = sorted(ms)
    # The smallest wait that this share of all of them do not exceed.
    exact = next(w for n, w in enumerate(ordered, 1) if n >= share * len(ordered))
    at = bisect_left(BOUNDS_MS, exact)
    lower, upper = (0, *BOUNDS_MS)[at], (*BOUNDS_MS, BOUNDS_MS[-1])[at]

    found = counted(ms).percentile(share)

    assert found is not None
    assert lower <= found <= upper or found == pytest.approx(upper)


@given(st.lists(waits_ms, max_size=5))
def test_waits_of_several_minutes_are_those_of_all_of_them(minutes: list[list[int]]) -> None:
    found = together([counted(ms) for ms in minutes])

    everything = counted([each for ms in minutes for each in ms])
    assert found == everything
    assert found.files == sum(map(len, minutes))


def test_without_any_there_is_no_percentile() -> None:
    assert counted([]).percentile(0.5) is None
