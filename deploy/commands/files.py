"""The commands `files list|history|diff|rollback`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from deploy.cli.examples import examples
from deploy.cli.long_lists import SHOWN as MOST
from deploy.cli.long_lists import WholeOption, print_rest
from deploy.cli.output import (
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    ask,
    columns,
    find,
    line,
)
from deploy.commands.admin import YesOption, actor, say, when
from shared.admin.files import FileActions, FileRow, pairs
from shared.admin.outcomes import command, counted
from shared.admin.rollback import Rollback, summary
from shared.admin.rollback_plan import RollbackPlan
from shared.store.publishing.revisions import Revision

SHOWN = 5
_HEAD = ("file", "pages", "bytes", "written", "generation", "form", "state")

app = typer.Typer(help="Inspect and roll back the published files.", no_args_is_help=True)

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="file name or shard, e.g. posts-1.xml or posts/1")
]


@app.command("list")
@examples("sitemapd files list", "sitemapd files list --site shop --json")
def list_(
    whole: WholeOption = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """List each file: pages and bytes against its limits, time of writing, pending changes."""
    place = find(home, site)
    rows = FileActions(place.client(), place.name, place.site).rows()
    if as_json:
        answer([_as_dict(row) for row in rows], as_json=True)
        return
    shown = rows if whole else rows[:MOST]
    columns([_HEAD, *map(_shown, shown)])
    print_rest(len(rows) - len(shown))


def _shown(row: FileRow) -> tuple[str, ...]:
    written = "-" if row.lastmod is None else when(row.lastmod * 1000)
    return (
        row.file, f"{row.urls:,} of {row.most_urls:,}", f"{row.size:,} of {row.most_size:,}",
        written, str(row.generation), row.form, row.state,
    )  # fmt: skip


def _as_dict(row: FileRow) -> dict[str, Any]:
    return row._asdict() | {"shard": str(row.shard)}


@app.command()
@examples("sitemapd files history posts-1.xml", "sitemapd files history posts/1 --json")
def history(
    file: FileArgument,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the publishes that changed a file and are still kept, newest first."""
    place = find(home, site)
    files = FileActions(place.client(), place.name, place.site)
    found: list[dict[str, Any]] = [
        {
            "revision": each.at, "at": when(each.at_ms), "changed": each.changed,
            "lines_kept": each.lines is not None, "pages": each.file.urls if each.file else 0,
        }
        for each in files.history(files.shard(file))
    ]  # fmt: skip
    if as_json:
        answer(found, as_json=True)
        return
    for each in found:
        kept = "" if each["lines_kept"] else "  (too many to keep)"
        said = f"{each['revision']:20} {each['at']}  {counted(each['changed'], 'line')}{kept}"
        line(f"{said}, {counted(each['pages'], 'page')} then")
    if not found:
        line("no revision of it is kept")


@app.command()
@examples(
    "sitemapd files diff posts-1.xml",
    "sitemapd files diff posts-1.xml --at 1795250964623-0",
)
def diff(
    file: FileArgument,
    at: Annotated[
        str | None, typer.Option("--at", help="revision from `files history`; default: the latest")
    ] = None,
    whole: WholeOption = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the lines of a file before and after one publish."""
    place = find(home, site)
    files = FileActions(place.client(), place.name, place.site)
    revision = files.revision(files.shard(file), at)
    if as_json:
        answer(
            {
                "file": files.name(revision.shard), "revision": revision.at,
                "at_ms": revision.at_ms, "changed": revision.changed,
                "lines_kept": revision.lines is not None, "lines": list(pairs(revision)),
            },
            as_json=True,
        )  # fmt: skip
        return
    name = files.name(revision.shard)
    head = f"{name}  {revision.at}  {when(revision.at_ms)}  {counted(revision.changed, 'line')}"
    line(head, style="bold")
    lines = list(_coloured(revision))
    shown = lines if whole else lines[:MOST]
    for text, style in shown:
        line(text, style=style)
    print_rest(len(lines) - len(shown))
    if revision.lines is None:
        line("its lines were too many to keep")


def _coloured(revision: Revision) -> Iterator[tuple[str, str]]:
    for each in revision.lines or ():
        if each.before is not None:
            yield "- " + each.before.decode().rstrip("\n"), "red"
        if each.after is not None:
            yield "+ " + each.after.decode().rstrip("\n"), "green"


@app.command()
@examples(
    "sitemapd files rollback posts-1.xml --to 1795250964623-0",
    "sitemapd files rollback posts/1 --to 1795250964623-0 --yes",
)
def rollback(
    file: FileArgument,
    to: Annotated[str, typer.Option("--to", help="the oldest revision to undo")],
    yes: YesOption = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back what was published in a file since a revision, that revision included, after
    asking.

    Uses ordinary events: each page returns to its previous line.
    """
    place = find(home, site)
    client = place.client()
    me, rolling = actor(client), Rollback(client, place.name, place.site)
    shard = FileActions(client, place.name, place.site).shard(file)
    with me.doing("files rollback", place.name, file):
        plan = rolling.plan(shard, to)
    if not as_json:
        _show(plan)
    if not plan.events:
        answer({"said": "nothing to undo"}, as_json=as_json)
        return
    ask(f"Send {len(plan.events)} events for {file}?", yes=yes)
    with me.doing("files rollback", place.name, file):
        outcome = rolling.execute(shard, to, plan)
    say(me.record(outcome), as_json=as_json)
    if not as_json:
        look = command("event", "show", outcome.ids[-1], site=place.name)
        line(f"to see it published: {look}")


def _show(plan: RollbackPlan) -> None:
    line(summary(plan))
    for why, locs in (*plan.left.items(), *plan.noted.items()):
        some = ", ".join(locs[:SHOWN]) + (", ..." if len(locs) > SHOWN else "")
        line(f"{len(locs):6}  {why}: {some}", style="yellow")
