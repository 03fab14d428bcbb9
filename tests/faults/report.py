"""The table fault x times injected x acked x lost x torn x seconds to converge."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from tests.faults.run import Row

HEAD = (
    "| Fault | What is done | Injected | Acked | Refused | Unknown | Lost | Torn | Disagreeing "
    "| Reads | Right again (s) | Besides |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
)


def line(row: Row) -> str:
    """One row in Markdown."""
    seconds = f"{row.seconds:.1f}" if math.isfinite(row.seconds) else "never"
    cells = [
        row.fault, row.name, row.injected, row.acked, row.refused, row.unknown, row.lost, row.torn,
        row.disagreeing, row.reads, seconds, row.note,
    ]  # fmt: skip
    return (
        "| "
        + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells)
        + " |"
    )


def total(rows: Sequence[Row]) -> str:
    """The last line: all together."""
    sums = [sum(row[at] for row in rows) for at in range(2, 10)]  # type: ignore[misc]
    return "| | **all** | " + " | ".join(f"{number:,}" for number in sums) + " | | |"


def failed(row: Row) -> bool:
    """Whether anything was lost, torn, late or otherwise wrong."""
    return bool(
        row.lost or row.torn or row.disagreeing or row.wrong or not math.isfinite(row.seconds)
    )


def save(path: Path, seed: int, rows: Sequence[Row]) -> None:
    """The figures for a program to read."""
    path.write_text(json.dumps({"seed": seed, "rows": [row._asdict() for row in rows]}, indent=1))
