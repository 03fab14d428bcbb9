"""What the commands share: where the configuration is, how answers and errors are printed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import redis
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deploy.embedded import EmbeddedServer
from shared.errors import ConfigError, Fault
from shared.settings import FILE, Settings, load
from shared.sites import Site
from shared.store.redis import connect

out = Console()
err = Console(stderr=True)

REDIS_TIMEOUT_S = 10.0

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", help="directory of sitemapd.toml [env SITEMAPD_HOME; else . or demo]"),
]
SiteOption = Annotated[str | None, typer.Option("--site", help="which site; default the first")]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON, for programs")]


class Place(NamedTuple):
    """A configuration, where it is, and one of its sites."""

    home: Path
    settings: Settings
    name: str
    site: Site

    def client(self) -> redis.Redis:
        """A client of its Redis."""
        return connect(self.settings.redis_url, REDIS_TIMEOUT_S)


def find_home(home: Path | None) -> Path:
    """The directory meant by --home, by SITEMAPD_HOME, or by what is here."""
    if home is not None:
        return home
    if "SITEMAPD_HOME" in os.environ:
        return Path(os.environ["SITEMAPD_HOME"])
    return Path() if Path(FILE).exists() else Path("demo")


def find(home: Path | None, site: str | None = None) -> Place:
    """The configuration and the site that a command is about; ConfigError if there is none."""
    where = find_home(home)
    settings = load(where / FILE)
    if not settings.redis_url:
        settings = settings.model_copy(update={"redis_url": EmbeddedServer(where).url})
    if not settings.sites:
        raise ConfigError(Fault("sites", "config", "no site is configured"))
    name = site or next(iter(settings.sites))
    if name not in settings.sites:
        known = ", ".join(settings.sites)
        raise ConfigError(
            Fault("--site", "config", f"{name} is not configured; there are: {known}")
        )
    return Place(where, settings, name, settings.sites[name])


def answer(value: Any, *, as_json: bool) -> None:
    """Print `value` (a mapping or a list of them), as a table or as JSON."""
    if as_json:
        print(json.dumps(value))
        return
    rows = value if isinstance(value, list) else [value]
    for row in rows:
        table = Table(show_header=False, box=None, pad_edge=False)
        for line in _lines(row):
            table.add_row(*line)
        out.print(table, soft_wrap=True)


def _lines(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Name and value of each line; what is nested has the names around it before its own."""
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
    """A progress bar on standard error; what is given is told how many more are done."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        disable=quiet or not err.is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)
