"""The command `up`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.interrupts import leave
from deploy.cli.output import DEFAULT_HOME
from shared.config.settings import Settings
from shared.telemetry import logs


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
) -> None:
    """Run everything on this machine: Redis, webhook, worker, the web root."""
    signal.signal(signal.SIGINT, leave)  # until `run` handles it
    from deploy.local.up import up as run

    logs.configure(streams=True)
    raise typer.Exit(run(home, http, behind_proxy=behind_proxy, hint=_hint))


def _hint(settings: Settings, address: str) -> str:
    """Return hints: the short and the long way to send an event, and the address of the result."""
    site = next(iter(settings.sites.values()))
    look = (
        f"# look, after the first event: {address}{site.base.path}sitemap.html\n"
        if site.pages
        else ""
    )
    return (
        f"# send one: sitemapd event send {site.base.url('hello-world')} --to {address} --watch\n"
        f"# the same in shell: sitemapd event example --to {address}\n{look}"
    )
