"""Commands about the console: `sitemapd console link`."""

from __future__ import annotations

from typing import Annotated

import typer

from deploy.cli.addresses import web_address
from deploy.cli.examples import examples
from deploy.cli.output import HomeOption, JsonOption, answer, find_any, raw
from deploy.commands.admin import actor
from deploy.local import login_link
from deploy.local.processes import served_at
from shared.store.operations.audit_log import AuditLog

app = typer.Typer(help="The web console at /admin/.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """The console at /admin/."""


@app.command()
@examples(
    "sitemapd console link",
    "sitemapd console link --user editor --to https://sitemaps.example.com",
)
def link(
    user: Annotated[
        str | None, typer.Option("--user", help="user to log in; default: the first operator")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            parser=web_address,
            metavar="URL",
            help="address of the console; default: its `origin`, else that of `up`",
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a link that logs a user in once, within ten minutes, without a token."""
    place = find_any(home)
    console = place.settings.console
    name = login_link.user_of(console, user)
    address = login_link.where(console, served_at(place.home), to)
    client = place.client()
    made = login_link.make(console, client, address, name)
    AuditLog(client).write(actor(client).who, "login link", f"made for {name}", way="cli")
    if as_json:
        answer({"link": made}, as_json=True)
    else:
        raw(made)
