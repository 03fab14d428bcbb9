"""Figures of a run of the benchmark, found by the names of their rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

MEASURED = Path(__file__).with_name("measured.json")
"""Figures that a fresh clone has; `machine` and `runs` in it say where they are from."""


class MissingRowError(Exception):
    """A figure that the model needs is not among those of the run."""


class Row(NamedTuple):
    """One row of the benchmark: a pattern of its whole name, and the part that measures it."""

    pattern: str
    part: str


class Figures:
    """The rows of a run."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.machine: dict[str, Any] = document["machine"]
        self.runs: str = document.get("runs", "one run")
        self._rows: list[dict[str, Any]] = document["figures"]

    @classmethod
    def load(cls, path: Path) -> Figures:
        """Read the figures in `path`, as `make bench` writes them."""
        return cls(json.loads(path.read_text(encoding="utf-8")))

    def row(self, row: Row, *, after: str = "") -> dict[str, Any]:
        """Return the first figure of this name, below the first one that begins with `after`.

        Raises MissingRowError.
        """
        seen = not after
        for each in self._rows:
            if seen and re.fullmatch(row.pattern, each["name"]):
                return each
            seen = seen or each["name"].startswith(after)
        raise MissingRowError(
            f'no row "{row.pattern}" in the figures: make bench ARGS="{row.part}" measures it'
        )

    def value(self, row: Row, field: str = "value") -> float:
        """Return the value of the figure of this name. Raises MissingRowError."""
        found = self.row(row).get(field)
        if found is None:
            raise MissingRowError(
                f'row "{row.pattern}" has no {field}: make bench ARGS="{row.part}" measures it'
            )
        return float(found)
