"""What all checks share: the names they have, what they found so far, how they let others work."""

from __future__ import annotations

from collections.abc import Callable

from shared.store.operations.checks import SAMPLES, FindingSample

Step = Callable[[int], None]
"""Called after every few milliseconds of work with how many pages were looked at. May wait a while,
and raises CheckError if the check is to be given up.
"""


class CheckTally:
    """What each check has found: how many, and some of them."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._samples: dict[str, list[FindingSample]] = {}

    def add(self, check: str, where: str, detail: str = "", *, times: int = 1) -> None:
        """`check` has found `where`, which counts for so many."""
        self._counts[check] = self._counts.get(check, 0) + times
        samples = self._samples.setdefault(check, [])
        if len(samples) < SAMPLES:
            samples.append(FindingSample(where, detail))

    def count(self, check: str) -> int:
        """How many `check` has found."""
        return self._counts.get(check, 0)

    def samples(self, check: str) -> tuple[FindingSample, ...]:
        """Some of them, SAMPLES at most."""
        return tuple(self._samples.get(check, ()))
