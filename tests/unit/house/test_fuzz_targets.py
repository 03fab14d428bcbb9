"""What `make fuzz` runs for long, for a moment: its oracles hold for its seeds and random bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS


@st.composite
def mutated(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A seed with some bytes cut out, put in or doubled."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 3))):
        begin, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        middle = draw(st.binary(max_size=4) | st.just(data[begin:end] * 2) | st.just(b""))
        data = data[:begin] + middle + data[end:]
    return data


@pytest.mark.parametrize("name", TARGETS)
def test_the_oracle_holds(name: str) -> None:
    target = TARGETS[name]
    for seed in target.seeds:
        target.run(seed)

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(mutated(target.seeds) | st.binary(max_size=100))
    def holds(data: bytes) -> None:
        target.run(data)

    holds()
