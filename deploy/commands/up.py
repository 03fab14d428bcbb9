"""The command `up`."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from shutil import get_terminal_size, which
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.cli.box import boxed
from deploy.cli.examples import examples
from deploy.cli.homes import DEFAULT_HOME, HOMES
from deploy.cli.interrupts import leave
from deploy.cli.output import JsonOption, line, print_json
from shared.config.locations import FILE
from shared.telemetry import logs

if TYPE_CHECKING:
    from deploy.local.up import Ready


@examples("sitemapd up", "sitemapd up --home demo --http 127.0.0.1:9000")
def up(
    home: Annotated[
        Path,
        typer.Option(
            "--home",
            envvar="SITEMAPD_HOME",
            help="directory of configuration, data and logs; made if it is not there",
        ),
    ] = DEFAULT_HOME,
    http: Annotated[
        str, typer.Option("--http", help="HOST:PORT to listen on; port 0: any free port")
    ] = ("127.0.0.1:8080"),
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="allow an address other than loopback, for use behind a proxy"
        ),
    ] = False,
    empty: Annotated[
        bool, typer.Option("--empty", help="begin a demo site without its home page")
    ] = False,
    log_mb: Annotated[
        float, typer.Option("--log-mb", min=0.001, help="megabytes of one file in logs/")
    ] = 10.0,
    log_files: Annotated[
        int, typer.Option("--log-files", min=0, max=1000, help="rotated files kept of each log")
    ] = 3,
    as_json: JsonOption = False,
) -> None:
    """Run everything on this machine: Redis, webhook, worker, the web root.

    On a terminal it ends its start with the addresses of the sitemap and of the console, and one
    command to try; elsewhere with the line `ready ADDRESS`.
    """
    signal.signal(signal.SIGINT, leave)  # until `run` handles it
    for_people = sys.stdout.isatty() and not as_json
    if for_people:
        line(f"starting in {home} ...")
    from deploy.local.log_file import LogBounds
    from deploy.local.up import say_ready, say_serving
    from deploy.local.up import up as run

    serving: Callable[[Ready], None] = say_serving
    ready: Callable[[Ready], None] = say_ready
    if for_people:
        width = get_terminal_size().columns  # of a stream that is replaced here
        serving, ready = _say_nothing, partial(_show_ready, width=width)
    if as_json:
        serving, ready = _say_nothing, _print_ready
    logs.configure(level="warning" if for_people else "info", streams=True)
    code = run(
        home, http, behind_proxy=behind_proxy, first_page=not empty, serving=serving, ready=ready,
        bounds=LogBounds(int(log_mb * 1024 * 1024), log_files),
    )  # fmt: skip
    raise typer.Exit(code)


def _say_nothing(_now: Ready) -> None:
    pass


def _print_ready(now: Ready) -> None:
    from shared.config.filenames import index_name

    sites = {name: site.base.url(index_name(site, 0)) for name, site in now.settings.sites.items()}
    print_json({"ready": now.address, "home": str(now.home), "sitemaps": sites})


def _show_ready(now: Ready, width: int) -> None:
    """Show what can be opened now, and one command to try. Nothing that does not exist is named."""
    rows = [("sitemapd is ready", "until Ctrl-C"), *_files(now)]
    if now.settings.console.users:
        rows.append(("console", _login(now)))
        rows.append(("", "once, within 10 minutes; then again: sitemapd console link"))
    if now.settings.sites:
        rows.append(("try", shlex.join(_to_try(now))))
    for each in boxed(rows, width):
        line(each)


def _files(now: Ready) -> Iterator[tuple[str, str]]:
    """Yield the sitemap and its readable page: of the sites that `up` serves at its own address,
    which is also where the first one is served whatever its base URL.
    """
    from shared.config.filenames import index_name

    for number, site in enumerate(now.settings.sites.values()):
        if number and site.base.origin != now.address:
            continue
        for name, file in (("sitemap", index_name(site, 0)), ("to read", "sitemap.html")):
            if (site.web_root / file).exists():
                yield name, f"{now.address}{site.base.path}{file}"


def _to_try(now: Ready) -> list[str]:
    """Return a command line that works as it is in another terminal in the same directory."""
    name, site = next(iter(now.settings.sites.items()))
    words = ["sitemapd" if which("sitemapd") else sys.argv[0], "event", "send"]
    words += [site.base.url("hello-world"), "--watch"]
    if site.base.origin != now.address:
        words += ["--to", now.address]
    if len(now.settings.sites) > 1:
        words += ["--site", name]
    found = next((home.resolve() for home in HOMES if (home / FILE).exists()), None)
    return words if found == now.home else [*words, "--home", str(now.home)]


def _login(now: Ready) -> str:
    from deploy.local import login_link
    from shared.errors import ConfigError
    from shared.store.connection import connect

    console = now.settings.console
    try:
        where = login_link.where(console, now.address)
    except ConfigError as error:
        return str(error)
    with closing(connect(now.store, 2.0)) as client:
        return login_link.make(console, client, where)
