"""Output of the commands, their common options, and the configuration they apply to.

All output passes through this module and `deploy.cli.tables`, which is loaded for tables, progress
and styles only. A text is printed as text: brackets are no markup, and characters that a terminal
obeys or hides are escaped (RELIABILITY T28, T36).

Modules that are slow to import (redis, pydantic, rich) are imported by the functions that use them:
every command imports this module.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from deploy.cli.completion import sites
from deploy.cli.homes import DEFAULT_HOME, HOMES, find_home
from deploy.cli.parts import Part, plain
from deploy.local.redis_socket import socket_path, socket_url
from shared.config.locations import FILE
from shared.errors import ConfigError, Fault
from shared.visible_text import few, visible

if TYPE_CHECKING:
    import redis

    from deploy.cli.tables import Grid
    from shared.config.settings import Settings
    from shared.config.sites.site import Site

_STYLED = {"FORCE_COLOR", "TTY_COMPATIBLE"}
"""Variables by which rich takes a stream for a terminal, or for none."""


HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="directory of sitemapd.toml [env SITEMAPD_HOME; else ., sitemapd-data or demo]",
    ),
]
SiteOption = Annotated[
    str | None,
    typer.Option("--site", autocompletion=sites, help="site; default: the only one configured"),
]
AllSitesOption = Annotated[
    str | None, typer.Option("--site", autocompletion=sites, help="only this site; default: all")
]
FormerSite = Annotated[str | None, typer.Argument(metavar="[SITE]", hidden=True)]
"""The site without `--site`, as some commands took it before; left out of their help."""
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON")]


class CommandTarget(NamedTuple):
    """A configuration, its directory, and one of its sites."""

    home: Path
    settings: Settings
    name: str
    site: Site

    def client(self, *, needed: bool = True) -> redis.Redis:
        """Return a client of its Redis. If that is `needed`, is the embedded one, and is not
        running, say how to start it.
        """
        from shared.store.connection import PATIENCE_S, connect

        if needed and self.settings.redis_url == socket_url(self.home):
            _note_if_stopped(self.home)
        return connect(self.settings.redis_url, PATIENCE_S, self.settings.wait_replicas)


def find(home: Path | None, site: str | None = None) -> CommandTarget:
    """Return the configuration and the one site for a command. Raises ConfigError if there is
    none, or if there are several and none is named.
    """
    found = find_any(home, site)
    if site is None and len(found.settings.sites) > 1:
        known = few(found.settings.sites)
        detail = f"several sites are configured, name one of them: {known}"
        raise ConfigError(Fault("--site", "config", detail))
    return found


def find_any(home: Path | None, site: str | None = None) -> CommandTarget:
    """Return the configuration for a command about all sites, with the site named, by default the
    first. Raises ConfigError if there is none.
    """
    from shared.config.settings import load

    where = find_home(home)
    if where is DEFAULT_HOME and not (where / FILE).exists():
        detail = (
            f"there is none in {', '.join(map(str, HOMES))}: name its directory with --home, or"
            " make one with: sitemapd up"
        )
        raise ConfigError(Fault(FILE, "config", detail))
    settings = load(where / FILE)
    if not settings.redis_url:
        settings = settings.model_copy(update={"redis_url": socket_url(where)})
    if not settings.sites:
        raise ConfigError(Fault("sites", "config", "no site is configured"))
    name = site or next(iter(settings.sites))
    if name not in settings.sites:
        known = few(settings.sites)
        raise ConfigError(
            Fault("--site", "config", f"{name} is not configured; there are: {known}")
        )
    return CommandTarget(where, settings, name, settings.sites[name])


@cache
def _note_if_stopped(home: Path) -> None:
    """Say how to start the server of `home` if nothing listens at its socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(socket_path(home)))
        except TimeoutError:
            return
        except OSError:
            note(f"sitemapd is not running in {home}: start it with: sitemapd up --home {home}")


def line(*parts: Part, style: str = "") -> None:
    """Print one line, with any characters in `parts`."""
    _print(sys.stdout, parts, style)


def note(*parts: Part, style: str = "") -> None:
    """Print one line for the user to standard error."""
    _print(sys.stderr, parts, style)


def _print(stream: TextIO, parts: Sequence[Part], style: str) -> None:
    if _shows_styles(stream) and (style or not all(isinstance(part, str) for part in parts)):
        from deploy.cli import tables

        tables.line(parts, style, error=stream is sys.stderr)
        return
    try:
        print("".join(map(plain, parts)), file=stream, flush=True)
    except BrokenPipeError:  # the reader is gone: no command writes on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


def _shows_styles(stream: TextIO) -> bool:
    """True if `stream` is a terminal, or the environment says so; rich knows the details."""
    return stream.isatty() or not os.environ.keys().isdisjoint(_STYLED)


def block(text: str) -> None:
    """Print `text`, which has lines of its own: commands to copy, steps to follow."""
    for each in text.removesuffix("\n").split("\n"):
        line(each)


def raw(text: str, end: str = "\n") -> None:
    """Print `text` for programs as it is; it must hold no control characters."""
    print(text, end=end)


def print_json(value: Any) -> None:
    """Print `value` as one line of JSON."""
    raw(json_text(value))
    sys.stdout.flush()  # the reader of a pipe waits for the line


def json_text(value: Any) -> str:
    """Return JSON of printable ASCII only."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def table(head: Sequence[str], rows: Iterable[Sequence[Part]]) -> Grid:
    """Return a table for `show`; its cells are folded, never cut."""
    from deploy.cli import tables

    return tables.table(head, rows)


def show(*parts: Grid | str) -> None:
    """Print tables and lines; where no terminal limits the width, no line is folded."""
    from deploy.cli import tables

    tables.show(*parts)


def columns(rows: Sequence[Sequence[str]]) -> None:
    """Print `rows` one below the other, the first as their head; whole at any width."""
    shown = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for number, row in enumerate(shown):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        line("  ".join(cells).rstrip(), style="" if number else "bold")


def ask(question: str, *, yes: bool) -> None:
    """Ask for confirmation; exit with code 1 unless confirmed. `yes`: confirmed beforehand."""
    if not yes:
        typer.confirm(visible(question), abort=True, err=True)


def print_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print the traceback of an unexpected error, with escaped characters, as `sys.excepthook`."""
    for text in traceback.format_exception(kind, error, trace):
        for each in text.removesuffix("\n").split("\n"):
            note("  ", each)


def printable_streams() -> None:
    """Escape characters that the encoding of the standard streams lacks, instead of failing on
    them.
    """
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def answer(value: Any, *, as_json: bool) -> None:
    """Print `value` (a mapping or a list of them), as lines of name and value or as JSON."""
    if as_json:
        print_json(value)
        return
    for row in value if isinstance(value, list) else [value]:
        lines = list(_lines(row))
        width = max((len(visible(name)) for name, _ in lines), default=0)
        for name, said in lines:
            line(visible(name).ljust(width), "  ", said)


def _lines(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and value of each line; a nested name is preceded by the names around it."""
    for name, item in row.items():
        said = before + name.replace("_", " ")
        if isinstance(item, Mapping):
            yield from _lines(item, f"{said} ")
        elif isinstance(item, (list, tuple)):
            for entry in item:
                nested = isinstance(entry, Mapping)
                yield said, "  ".join(map(str, entry.values())) if nested else str(entry)
        else:
            yield said, _words(item)


def _words(item: object) -> str:
    if item is None:
        return "never"
    return {True: "yes", False: "no"}[item] if isinstance(item, bool) else str(item)


@contextmanager
def progress(what: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error; call the yielded function with each further count."""
    if quiet or not _shows_styles(sys.stderr):
        yield lambda _more: None
        return
    from deploy.cli import tables

    with tables.progress(what, total) as advance:
        yield advance
