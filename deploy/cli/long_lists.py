"""Long lists of a report: the first lines, and all of them with `--all`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from deploy.cli.output import line

SHOWN = 20
"""Lines of a list that are printed without `--all`: they leave room for the summary."""

WholeOption = Annotated[
    bool, typer.Option("--all", help=f"print every line of a list, not only the first {SHOWN}")
]


def print_list(lines: Iterable[str], total: int, *, whole: bool) -> None:
    """Print the first SHOWN of the `total` lines, or the `whole` list, and the number that is left
    out.
    """
    for number, each in enumerate(lines):
        if number == SHOWN and not whole:
            print_rest(total - SHOWN)
            return
        line(each)


def print_rest(number: int) -> None:
    """Print the `number` of lines that are left out, if there are any."""
    if number:
        line(f"and {number:,} more; --all prints them", style="bold")
