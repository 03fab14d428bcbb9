"""Commands about what is published: status, entry, publish, verify, rebuild."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from deploy.console import HomeOption, JsonOption, Place, SiteOption, answer, find, out, progress
from shared.errors import PublishError
from shared.inspector import Inspector
from worker.audit import Audit

PUBLISH_DEADLINE_S = 60


def _audit(place: Place) -> Audit:
    return Audit(place.client(), place.name, place.site, f"cli-{os.getpid()}")


def status(home: HomeOption = None, site: SiteOption = None, as_json: JsonOption = False) -> None:
    """How each site is doing: pages, files, what waits and for how long."""
    place = find(home, site)
    client = place.client()
    answers = [
        Inspector(client, name, settings).status()
        for name, settings in place.settings.sites.items()
        if site is None or name == site
    ]
    answer(answers, as_json=as_json)


def entry(
    url: Annotated[str, typer.Argument(help="the page")],
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Where is my page, and why: its file, its values, what was decided lately."""
    place = find(home, site)
    found = Inspector(place.client(), place.name, place.site).entry(url)
    answer(found, as_json=as_json)
    raise typer.Exit(0 if found["listed"] else 1)


def publish(home: HomeOption = None, site: SiteOption = None, as_json: JsonOption = False) -> None:
    """Write what waits now, without minding the publish interval."""
    publisher = _audit(find(home, site)).publisher
    touched: list[str] = []
    deadline = time.monotonic() + PUBLISH_DEADLINE_S
    while publisher.state.dirty(1):
        done = publisher.publish()
        if done is not None and done.shards:
            touched += done.written + done.removed
        elif time.monotonic() > deadline:
            raise PublishError("not all could be written: see the worker's log, or try again")
        else:
            time.sleep(0.02)
    answer({"touched": touched}, as_json=as_json)


def verify(home: HomeOption = None, site: SiteOption = None, as_json: JsonOption = False) -> None:
    """Hold every published file against the state, byte for byte. Exit code 1 on a difference."""
    audit = _audit(find(home, site))
    total = audit.files()
    with progress("comparing", total, quiet=as_json) as seen:
        differences = list(audit.verify(seen))
    if as_json:
        found = [difference._asdict() for difference in differences]
        answer({"equal": not found, "files": total, "differences": found}, as_json=True)
    elif differences:
        for difference in differences:
            out.print(f"{difference.what:10} {difference.name}", highlight=False)
    else:
        out.print(f"equal: {total} files")
    raise typer.Exit(1 if differences else 0)


def rebuild(
    home: HomeOption = None,
    site: SiteOption = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="take over files that another state wrote")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write every file that differs from the state anew, beside the old one, and swap it in."""
    audit = _audit(find(home, site))
    if adopt:
        audit.publisher.adopt()
    with progress("rebuilding", audit.files(), quiet=as_json) as seen:
        touched = audit.rebuild(seen)
    answer({"touched": touched}, as_json=as_json)
