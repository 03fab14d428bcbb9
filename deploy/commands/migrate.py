"""The command `migrate`: the stored state of sites from one layout to another."""

from __future__ import annotations

import os
from typing import Annotated, Any

import redis
import typer

from deploy.cli.examples import examples
from deploy.cli.output import (
    AllSitesOption,
    HomeOption,
    JsonOption,
    answer,
    find_any,
    line,
    progress,
)
from deploy.commands.admin import recorded
from shared.admin.outcomes import counted
from shared.store.layouts.migration import Migration, layouts, move_shared
from shared.store.layouts.version import CURRENT


@examples("sitemapd migrate", "sitemapd migrate --site shop --rollback")
def migrate(
    home: HomeOption = None,
    site: AllSitesOption = None,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback",
            help="back to the layout before, for the version before; workers then wait",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Move the stored state of sites to the layout of this version, as its workers do at their
    start. Events are accepted meanwhile; run it again after an interruption.
    """
    place = find_any(home, site)
    client = place.client()
    done = [
        _one(client, name, rollback=rollback, quiet=as_json)
        for name in place.settings.sites
        if site is None or name == site
    ]
    move_shared(client, layouts(client, place.settings.sites))
    if as_json:
        answer(done, as_json=True)
        return
    for each in done:
        moved = counted(each["keys"], "key")
        line(f"{each['site']}: layout {each['was']} -> {each['layout']}, {moved} moved")
        for lost in each["lost"]:
            line(f"{each['site']}: the version before does not know {lost}")


def _one(client: redis.Redis, name: str, *, rollback: bool, quiet: bool) -> dict[str, Any]:
    migration = Migration(client, name, f"cli-{os.getpid()}")
    was, lost = migration.layout(), migration.left_behind() if rollback else []
    action = "migrate back" if rollback else "migrate"
    with recorded(client, action, name) as said:
        with progress(f"moving {name}", migration.count(), quiet=quiet) as seen:
            moved = migration.back(seen) if rollback else migration.run(seen)
        now = migration.layout()
        said(f"layout {was} -> {now}")
    return {
        "site": name, "was": _number(was.stored), "layout": _number(now.stored), "keys": moved,
        "lost": lost,
    }  # fmt: skip


def _number(stored: int | None) -> int:
    """Return the number of a layout; a site without state gets the current one."""
    return CURRENT if stored is None else stored
