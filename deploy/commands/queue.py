"""The commands `queue list|pause|resume|drain|purge|purges`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from deploy.cli.examples import examples
from deploy.cli.output import (
    AllSitesOption,
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    ask,
    columns,
    find,
    find_any,
    line,
    note,
    progress,
)
from deploy.commands.admin import (
    Saved,
    SaveOption,
    YesOption,
    act,
    actor,
    age,
    say,
    when,
)
from shared.admin.outcomes import ActionOutcome, command, counted
from shared.admin.queues import QueueActions, QueueRow
from shared.errors import InvalidError
from shared.store.operations.queues import EVENTS, FORMER, INTAKE, PAUSABLE

EXIT_INTERRUPTED = 130
LOOK_S = 0.1
STUCK_S = 10.0
"""Seconds without progress after which `drain` prints a note."""

_HEAD = ("site", "queue", "waiting", "in flight", "oldest", "a minute", "paused")

app = typer.Typer(help="List queues; pause, resume, drain or purge them.", no_args_is_help=True)


def _current(queue: str) -> str:
    """Return the name that `queue` has now, with a warning about a former one."""
    if queue in FORMER:
        note(f"`{queue}` is called `{FORMER[queue]}` now")
    return FORMER.get(queue, queue)


QueueArgument = Annotated[
    str, typer.Argument(metavar="QUEUE", help="one of " + ", ".join(PAUSABLE), callback=_current)
]


@app.command("list")
@examples("sitemapd queue list", "sitemapd queue list --site shop --json")
def list_(
    home: HomeOption = None, site: AllSitesOption = None, as_json: JsonOption = False
) -> None:
    """List each queue of each site: what waits, since when, its rate, and pauses."""
    place = find_any(home, site)
    client = place.client()
    names = [name for name in place.settings.sites if site in {None, name}]
    sites = place.settings.sites
    engines = {name: tuple(sites[name].notify.engines) for name in names}
    rows = [row for name in names for row in QueueActions(client, name, engines[name]).rows()]
    if as_json:
        answer([_as_dict(row) for row in rows], as_json=True)
        return
    columns([_HEAD, *map(_shown, rows)])
    for row in rows:
        if row.paused:
            again = command("queue", "resume", row.queue, site=row.site)
            note(f"{row.queue} of {row.site}: {row.means}; to resume it: {again}")


def _shown(row: QueueRow) -> tuple[str, ...]:
    paused = f"by {row.paused.by} since {when(row.paused.since_ms)}" if row.paused else ""
    numbers = (str(row.waiting), str(row.in_flight), age(row.oldest_ms))
    waits = ("", "", "") if row.queue == INTAKE else numbers  # the intake holds nothing
    return row.site, row.queue, *waits, "-" if row.rate is None else f"{row.rate:g}", paused


def _as_dict(row: QueueRow) -> dict[str, object]:
    paused = row.paused._asdict() if row.paused else None
    return row._asdict() | {"paused": paused, "means": row.means}


@app.command()
@examples("sitemapd queue pause", "sitemapd queue pause publish --site shop")
def pause(
    queue: QueueArgument = EVENTS,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a queue until `queue resume`, also across restarts. Nothing is lost."""
    place = find(home, site)
    client = place.client()
    queues = QueueActions(client, place.name)
    act(
        client, "queue pause", place.name, queue, lambda who: queues.pause(queue, who),
        as_json=as_json,
    )  # fmt: skip


@app.command()
@examples("sitemapd queue resume", "sitemapd queue resume intake --site shop")
def resume(
    queue: QueueArgument = EVENTS,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resume a queue; `intake` accepts events again after `queue drain`."""
    place = find(home, site)
    client = place.client()
    queues = QueueActions(client, place.name)
    act(
        client, "queue resume", place.name, queue, lambda _: queues.resume(queue),
        as_json=as_json,
    )  # fmt: skip


@app.command()
@examples("sitemapd queue drain", "sitemapd queue drain --site shop")
def drain(home: HomeOption = None, site: SiteOption = None, as_json: JsonOption = False) -> None:
    """Close the intake, and wait until everything is decided and published.

    Senders get 503 and try again later, until `queue resume intake`. Ctrl-C leaves it closed.
    """
    place = find(home, site)
    client = place.client()
    me, queues = actor(client), QueueActions(client, place.name)
    try:
        with me.doing("queue drain", place.name, INTAKE):
            outcome = me.record(queues.drain(me.who))
        _wait(queues, quiet=as_json)
    except KeyboardInterrupt:
        reopen = command("queue", "resume", INTAKE, site=place.name)
        note(f"work remains, and the intake stays closed until: {reopen}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    say(outcome._replace(said=f"the backlog is empty; {outcome.said}"), as_json=as_json)


def _wait(queues: QueueActions, *, quiet: bool) -> None:
    """Return when no event and no file waits."""
    at = queues.waiting()
    left, moved = at.events + at.files, time.monotonic()
    with progress("draining", left, quiet=quiet) as seen:
        while left:
            time.sleep(LOOK_S)
            at = queues.waiting()
            now = at.events + at.files
            if now != left:
                seen(left - now)
                left, moved = now, time.monotonic()
            elif time.monotonic() - moved > STUCK_S:
                moved = time.monotonic()
                waits = f"{counted(at.events, 'event')} and {counted(at.files, 'file')}"
                note(f"{waits} wait, without progress: check that a worker runs, and its log")


@app.command()
@examples("sitemapd queue purge", "sitemapd queue purge --save waiting.ndjson --yes")
def purge(
    save: SaveOption = None,
    yes: YesOption = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove every waiting event, after asking; the events are saved, and also kept for a week.

    To put them back: sitemapd event replay --file FILE.
    """
    place = find(home, site)
    client = place.client()
    queues = QueueActions(client, place.name)
    waits = queues.waiting().events
    if not waits:
        say(ActionOutcome("queue purge", place.name, "", "nothing waits", ""), as_json=as_json)
        return
    ask(f"Remove {counted(waits, 'event')} of {place.name}?", yes=yes)
    saved = Saved(save, "purged", place.name)

    def purged(_who: str) -> ActionOutcome:
        try:
            return saved.told(queues.purge(saved))
        except InvalidError:
            note(f"removed and not saved; kept for a week, see: {_purges(place.name)}")
            raise

    act(client, "queue purge", place.name, "", purged, as_json=as_json)
    if saved.lines and not as_json:
        back = command("event", "replay", f"--file={saved}", site=place.name)
        line(f"to restore them: {back}")


def _purges(site: str) -> str:
    return command("queue", "purges", site=site)


@app.command()
@examples("sitemapd queue purges", "sitemapd queue purges 1795250964623 --save waiting.ndjson")
def purges(
    name: Annotated[str | None, typer.Argument(help="name of the purge to save")] = None,
    save: SaveOption = None,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the purges of the last week; with a name, save the events of one to a file."""
    place = find(home, site)
    queues = QueueActions(place.client(), place.name)
    if name is None:
        found = [
            {"purge": each, "events": number, "at": when(int(each))}
            for each, number in queues.purges().items()
        ]
        answer(found, as_json=as_json)
        return
    events = queues.kept(name)
    saved = Saved(save, f"purged-{name}", place.name)
    saved(events)
    answer({"saved": str(saved), "events": saved.lines}, as_json=as_json)
