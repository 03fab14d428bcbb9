"""The command `sitemapd`. Exit codes: 0 done, 1 difference or failure found, 2 usage, 78 bad
configuration.
"""

from __future__ import annotations

import base64
import os
import secrets as random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from deploy.commands import (
    backup,
    check,
    connect,
    console,
    crawl,
    dead,
    doctor,
    events,
    files,
    imports,
    notify,
    queue,
    reconcile,
    run,
    state,
    verify,
    websub,
    workers,
)
from deploy.nginx_lines import lines
from deploy.terminal import HomeOption, JsonOption, SiteOption, answer, err, find
from shared import telemetry
from shared.errors import ConfigError, InvalidError, SitemapdError, StoreError
from shared.settings import Settings
from shared.sites import WEBHOOK_PREFIX, Site
from shared.store.publishing import Publishing

EXIT_FAILURE = 1
EXIT_CONFIG = 78

app = typer.Typer(
    help="Event-driven sitemaps: one event in, the one right file changed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
config = typer.Typer(help="The configuration.", no_args_is_help=True)
app.add_typer(config, name="config")
app.add_typer(console.app, name="console")
app.add_typer(dead.app, name="dead")
app.add_typer(events.app, name="event")
app.add_typer(files.app, name="files")
app.add_typer(queue.app, name="queue")
app.add_typer(run.app, name="run")
app.add_typer(notify.app, name="notify")
app.add_typer(websub.app, name="websub")
app.add_typer(workers.app, name="workers")
app.command("import")(imports.import_)
for command in (
    state.status,
    state.entry,
    state.confirm,
    state.publish,
    verify.verify,
    verify.rebuild,
    check.check,
    reconcile.reconcile,
    backup.backup,
    backup.restore,
    connect.connect,
    doctor.doctor,
    crawl.crawl,
):
    app.command()(command)


@app.command()
def up(
    home: Annotated[Path, typer.Option("--home", help="where everything is kept")],
    http: Annotated[str, typer.Option("--http", help="HOST:PORT; port 0: any free one")] = (
        "127.0.0.1:8080"
    ),
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="allow an address that is not loopback")
    ] = False,
) -> None:
    """Run everything on this machine: Redis, webhook, worker, schedule, the web root."""
    from deploy.local import up as run

    telemetry.configure(streams=True)
    raise typer.Exit(run(home, http, behind_proxy=behind_proxy, hint=_hint))


def _hint(settings: Settings, address: str) -> str:
    """The short way to send an event, where to find the long one, and where to look."""
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


@config.command("check")
def config_check(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Read the configuration and name every fault in it."""
    place = find(home)
    sites = [
        {
            "site": name,
            "base_url": site.base_url,
            "web_root": str(site.web_root),
            "form": site.form,
            "sections": ", ".join(sorted(site.limits)),
        }
        | _of_the_host(site)
        for name, site in place.settings.sites.items()
    ]
    answer(sites, as_json=as_json)


def _of_the_host(site: Site) -> dict[str, str]:
    """What only an administrator can do for a site below a directory: crawlers read the host's
    robots.txt and no other (PROTOCOL L6, R1).
    """
    if site.base.path == "/":
        return {}
    line = f"Sitemap: {site.base.url('sitemap.xml')}"
    return {"to_do": f"add to {site.base.origin}/robots.txt the line: {line}"}


@config.command("nginx")
def config_nginx(home: HomeOption = None, site: SiteOption = None) -> None:
    """Print the nginx lines that serve a site's files beside another web site on its host.

    They name the files that the settings of today, and what is published, can make: print them
    anew after a change of either.
    """
    place = find(home, site)
    sections: list[str] = []
    with suppress(StoreError):
        sections = Publishing(place.client(), place.name).sections()
    print(lines(place.site, sections), end="")


@app.command()
def secret() -> None:
    """Make a new secret for `secrets = [...]`."""
    print(WEBHOOK_PREFIX + base64.b64encode(random.token_bytes(32)).decode())


def main() -> None:
    """Run a command; errors of ours become one line and an exit code."""
    telemetry.configure(level="warning")
    try:
        try:
            app()
        finally:
            # Here, where what fails can be told: at its end the interpreter writes a traceback.
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has read enough
        _close_stdout()
        sys.exit(EXIT_FAILURE)
    except OSError as error:
        _close_stdout()
        err.print(Text(f"error {error}"), soft_wrap=True)
        sys.exit(EXIT_FAILURE)
    except ConfigError as error:
        for fault in error.faults:
            err.print(f"[red]configuration[/red] {fault}", highlight=False, soft_wrap=True)
        sys.exit(EXIT_CONFIG)
    except InvalidError as error:
        for fault in error.faults:
            err.print(f"[red]refused[/red] {fault}", highlight=False, soft_wrap=True)
        sys.exit(EXIT_FAILURE)
    except SitemapdError as error:
        err.print(f"[red]error[/red] {error}", highlight=False, soft_wrap=True)
        sys.exit(EXIT_FAILURE)


def _close_stdout() -> None:
    """Drop what could not be written, or the interpreter tries again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
