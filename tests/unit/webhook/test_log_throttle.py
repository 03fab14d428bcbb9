"""Refusals that come in masses have one line."""

from __future__ import annotations

import threading
from collections.abc import Hashable

from webhook.log_throttle import MOST_KINDS, SINGLY, LogThrottle


class Told:
    def __init__(self) -> None:
        self.lines: list[tuple[Hashable, int]] = []
        self.some = threading.Event()

    def __call__(self, kind: Hashable, more: int) -> None:
        self.lines.append((kind, more))
        self.some.set()


def test_the_first_of_a_kind_have_a_line_each_and_the_others_none() -> None:
    told = Told()
    repeats = LogThrottle(told, window_s=600)

    singly = [repeats.singly((401, "unauthorized")) for _ in range(1_000)]
    of_another = [repeats.singly((413, "too-large")) for _ in range(3)]

    assert singly == [True] * SINGLY + [False] * (1_000 - SINGLY)
    assert of_another == [True] * 3
    assert told.lines == []


def test_the_others_are_told_together_though_nothing_more_comes() -> None:
    told = Told()
    repeats = LogThrottle(told, window_s=0.2)
    for _ in range(2_000):
        repeats.singly("a")

    assert told.some.wait(20)
    assert 0 < sum(more for _, more in told.lines) <= 2_000 - SINGLY
    assert {kind for kind, _ in told.lines} == {"a"}


def test_the_kinds_that_are_told_apart_are_bounded() -> None:
    repeats = LogThrottle(Told(), window_s=600)

    lines = sum(repeats.singly(f"kind {n}") for n in range(10_000))

    assert lines <= MOST_KINDS + SINGLY
