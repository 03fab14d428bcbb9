"""What was measured: one table for people, one JSON file for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One row: `value` and `baseline` in `unit`, median and (where it makes sense) p99.

    `ratio` is the median of the ratios of interleaved pairs, not the ratio of the medians: what
    disturbs the machine disturbs both halves of a pair. `hold` is the promise in words, `holds`
    whether it was kept; None where nothing is promised.
    """

    name: str
    unit: str
    value: float
    p99: float | None = None
    against: str = ""
    baseline: float | None = None
    baseline_p99: float | None = None
    ratio: float | None = None
    hold: str = ""
    holds: bool | None = None


def p99(samples: Sequence[float]) -> float:
    """The value that one sample in a hundred exceeds."""
    return sorted(samples)[min(len(samples) - 1, int(len(samples) * 0.99))]


def compared(
    name: str,
    unit: str,
    pairs: Sequence[tuple[float, float]],
    against: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Figure:
    """The figure of interleaved (measured, baseline) `pairs`; the bounds are on their ratio."""
    values, baselines = [a for a, _ in pairs], [b for _, b in pairs]
    ratio = median(a / b for a, b in pairs)
    hold, holds = "", None
    if at_most is not None:
        hold, holds = f"<= {at_most:g}x", ratio <= at_most
    if at_least is not None:
        hold, holds = f">= {at_least:g}x", ratio >= at_least
    return Figure(
        name, unit, median(values), p99(values), against, median(baselines), p99(baselines),
        ratio, hold, holds,
    )  # fmt: skip


class Report:
    """The figures of one run."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self._console = Console(width=None if Console().is_terminal else 150)

    def add(self, figure: Figure) -> None:
        """Keep `figure`, and show that it is there: a run takes minutes."""
        self.figures.append(figure)
        self._console.print(f"  {figure.name}: {_number(figure.value)} {figure.unit}", style="dim")

    @property
    def broken(self) -> list[Figure]:
        """The figures whose promise was not kept."""
        return [figure for figure in self.figures if figure.holds is False]

    def show(self) -> None:
        """Print the table."""
        table = Table(title="sitemapd: figures of one run, ratios of interleaved pairs")
        table.add_column("what", overflow="fold", ratio=3)
        for name in ("p50", "p99", "unit"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("next to", overflow="fold", ratio=2)
        for name in ("p50", "p99", "ratio"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("to hold", no_wrap=True)
        table.add_column("", no_wrap=True)
        for f in self.figures:
            verdict = {None: "", True: "[green]holds[/]", False: "[red]broken[/]"}[f.holds]
            table.add_row(
                f.name, _number(f.value), _number(f.p99), f.unit, f.against,
                _number(f.baseline), _number(f.baseline_p99),
                _number(f.ratio), f.hold, verdict,
            )  # fmt: skip
        self._console.print(table)

    def write(self, path: Path) -> None:
        """Write the same as JSON."""
        machine = {
            "system": platform.platform(),
            "python": platform.python_version(),
            "processors": os.cpu_count(),
            "load": os.getloadavg()[0],
        }
        document = {"machine": machine, "figures": [asdict(figure) for figure in self.figures]}
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
