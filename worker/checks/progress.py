"""Shared parts of all checks: the counts of findings, and the callback between steps."""

from __future__ import annotations

from collections.abc import Callable

from shared.store.operations.checks import SAMPLES, FindingSample

Step = Callable[[int], None]
"""Called after every few milliseconds of work with the number of pages examined. It may wait, and
raises CheckError to abort the check.
"""


class CheckTally:
    """Findings of each check: their number, and samples."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._samples: dict[str, list[FindingSample]] = {}

    def add(self, check: str, where: str, detail: str = "", *, times: int = 1) -> None:
        """Add a finding of `check` at `where`, counted `times` times."""
        self._counts[check] = self._counts.get(check, 0) + times
        samples = self._samples.setdefault(check, [])
        if len(samples) < SAMPLES:
            samples.append(FindingSample(where, detail))

    def count(self, check: str) -> int:
        """Return the number of findings of `check`."""
        return self._counts.get(check, 0)

    def samples(self, check: str) -> tuple[FindingSample, ...]:
        """Return at most SAMPLES findings of `check`."""
        return tuple(self._samples.get(check, ()))
