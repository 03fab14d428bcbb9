"""Rates of the live view: differences between two looks."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.commands.watch import Rates, WatchedState, rates


def look(at: float, accepted: int, publishes: int) -> WatchedState:
    site: dict[str, Any] = {"accepted_events": accepted, "publishes": publishes}
    return WatchedState(at, [{"accepted_events": 0, "publishes": 0}, site], [])


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (None, look(10, 5, 5), Rates(None, None)),
        (look(10, 5, 5), look(10, 9, 9), Rates(None, None)),
        (look(10, 100, 7), look(12, 150, 8), Rates(25.0, 0.5)),
        (look(10, 100, 7), look(11, 3, 1), Rates(0.0, 0.0)),  # the state was restored meanwhile
    ],
)
def test_a_rate_is_what_came_between_two_looks_and_never_less_than_nothing(
    before: WatchedState | None, now: WatchedState, expected: Rates
) -> None:
    assert rates(before, now, 1) == expected
