"""Tables, progress and styled lines of the commands, drawn by rich.

Only this module imports rich, which takes as long to import as the rest of a short command:
`deploy.cli.output` loads it where a command needs it. Styles come from literals in the code only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from deploy.cli.parts import Part
from shared.visible_text import visible

Grid = Table

_WIDE = 1_000
"""Width in columns of a table where no terminal limits it."""


class _Screen(Console):
    """Standard output or standard error; a str printed to it is one line of text."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, markup=False, highlight=False, emoji=False)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(visible(text), **how)


out = _Screen()
err = _Screen(stderr=True)


def line(parts: Iterable[Part], style: str, *, error: bool) -> None:
    """Print one line to standard output, or to standard error, with the styles of its parts."""
    (err if error else out).print(_text(parts, style), soft_wrap=True)


def table(head: Sequence[str], rows: Iterable[Sequence[Part]]) -> Grid:
    """Return a table for `show`; its cells are folded, never cut."""
    made = Table(box=None, pad_edge=False)
    for name in head:
        made.add_column(name, overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, str) else _text([cell]) for cell in row))
    return made


def show(*tables: Grid | str) -> None:
    """Print tables and lines; where no terminal limits the width, no line is folded."""
    screen = out if out.is_terminal else _Screen(width=_WIDE)
    for each in tables:
        screen.print(each, soft_wrap=isinstance(each, str))


@contextmanager
def redrawn() -> Iterator[Callable[..., None]]:
    """Yield a function that draws tables and lines, each time at the same place of the terminal."""
    with Live(console=out, auto_refresh=False) as live:

        def draw(*tables: Grid | str) -> None:
            live.update(Group(*map(_drawn, tables)), refresh=True)

        yield draw


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error; call the yielded function with each further count."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        disable=not err.is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)


def _drawn(what: Grid | str) -> RenderableType:
    return _text([what]) if isinstance(what, str) else what


def _text(parts: Iterable[Part], style: str = "") -> Text:
    # rich drops control characters when a Text is made, so they are escaped before
    text = Text(style=style)
    for part in parts:
        said, style = (part, "") if isinstance(part, str) else part
        text.append(visible(said), style or None)
    return text
