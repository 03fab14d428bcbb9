"""The command `sitemapd`. Exit codes: 0 done, 1 difference or failure found, 2 usage, 78 bad
configuration.
"""

from __future__ import annotations

import base64
import os
import secrets as random
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from typer import TyperException
from typer.main import get_command

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
from deploy.entry import leave
from deploy.nginx_lines import lines
from deploy.terminal import (
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    find,
    note,
    print_traceback,
    printable_streams,
    raw,
)
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
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
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
    signal.signal(signal.SIGINT, leave)  # until `run` looks after it
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
    raw(lines(place.site, sections), end="")


@app.command()
def secret() -> None:
    """Make a new secret for `secrets = [...]`."""
    raw(WEBHOOK_PREFIX + base64.b64encode(random.token_bytes(32)).decode())


def main() -> None:
    """Run a command; errors of ours become one line each and an exit code."""
    telemetry.configure(level="warning")
    printable_streams()
    # typer prints errors as they are, so it raises them (standalone_mode) and they are shown here.
    sys.excepthook = print_traceback
    try:
        _check_arguments(sys.argv)
        code = get_command(app)(prog_name="sitemapd", standalone_mode=False)
        # Here, where what fails can be told: at its end the interpreter writes a traceback.
        sys.stdout.flush()
    except (SitemapdError, OSError, TyperException, typer.Abort) as error:
        code = _failed(error)
    finally:
        _drop_unwritten()
    sys.exit(code)


def _drop_unwritten() -> None:
    """Drop what standard output does not take, or the interpreter tries again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def _check_arguments(arguments: list[str]) -> None:
    """Refuse bytes that are no UTF-8: neither Redis nor JSON can hold what they decode to."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise typer.BadParameter(f"{argument} is not UTF-8") from None


def _failed(error: Exception) -> int:
    """Say what is wrong; the exit code."""
    match error:
        case ConfigError():
            return _named("configuration", error.faults, EXIT_CONFIG)
        case InvalidError():
            return _named("refused", error.faults, EXIT_FAILURE)
        case TyperException():
            if (context := getattr(error, "ctx", None)) is not None:
                note(context.get_usage())
                note(f"Try '{context.command_path} --help' for help.")
            return _named("error", [error.format_message()], error.exit_code)
        case typer.Abort():
            return _named("error", ["aborted"], EXIT_FAILURE)
        case BrokenPipeError():  # whoever read it has read enough
            return EXIT_FAILURE
        case _:
            return _named("error", [error], EXIT_FAILURE)


def _named(what: str, faults: Iterable[object], code: int) -> int:
    for fault in faults:
        note((what, "red"), f" {fault}")
    return code
