"""The command `user add`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from deploy.cli.examples import examples
from deploy.cli.output import HomeOption, JsonOption
from deploy.commands.changes import ConfigTarget
from shared.config.edit import changes

app = typer.Typer(help="Add users of the console, without a restart.", no_args_is_help=True)


class UserRole(StrEnum):
    """Roles of the console's users."""

    viewer = "viewer"
    operator = "operator"


@app.callback()
def _group() -> None:
    """Keep the group although it has one command."""


@app.command()
@examples("sitemapd user add ann", "sitemapd user add ann --role operator")
def add(
    name: Annotated[str, typer.Argument(help="name of the user: [a-z0-9][a-z0-9._@-]{0,63}")],
    role: Annotated[
        UserRole, typer.Option("--role", help="viewer reads only; operator may also act")
    ] = UserRole.viewer,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a user of the console, and print the token that logs in."""
    target = ConfigTarget(home)
    made = changes.add_user(target.file, name, role.value)
    target.finish(
        made.edit, "user add", "", name, as_json=as_json, further={"token": made.token},
        next_step=f"sitemapd console link --user {name}",
    )  # fmt: skip
