"""Readings that are gathered: own replies for each, and the round trips of the longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.store.round_trips import Reading, gathered


def asking(name: int, rounds: Sequence[int]) -> Reading[list[Any]]:
    """A reading that sends as many commands in each round as `rounds` says."""
    seen = []
    for at, count in enumerate(rounds):
        seen.append(list((yield [("GET", f"{name}-{at}-{n}") for n in range(count)])))
    return seen


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=6))
def test_gathered_readings_get_their_own_replies_in_the_rounds_of_the_longest(
    each: list[list[int]],
) -> None:
    reading = gathered(asking(name, rounds) for name, rounds in enumerate(each))
    trips, values = 0, None
    try:
        commands = next(reading)
        while True:
            trips += 1
            commands = reading.send([command[1] for command in commands])
    except StopIteration as done:
        values = done.value

    assert trips == max(map(len, each), default=0)
    assert values == [
        [[f"{name}-{at}-{n}" for n in range(count)] for at, count in enumerate(rounds)]
        for name, rounds in enumerate(each)
    ]
