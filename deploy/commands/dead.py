"""The commands `dead list|show|retry|discard`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from deploy.cli.examples import examples
from deploy.cli.long_lists import SHOWN, WholeOption, print_rest
from deploy.cli.output import (
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    ask,
    block,
    find,
    line,
    note,
)
from deploy.commands.admin import Saved, SaveOption, YesOption, act, when
from shared.admin.curl import curl
from shared.admin.dead_letters import DeadLetterActions, DeadLetterFilter, subject
from shared.admin.outcomes import ActionOutcome, command, counted
from shared.admin.queues import members
from shared.events.event import Event, SchemaError
from shared.store.operations.dead_letters import DeadLetter

app = typer.Typer(help="Dead letters: events that failed five times.", no_args_is_help=True)

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="ids from `dead list`")
]
ErrorOption = Annotated[
    str | None, typer.Option("--error", help="every dead letter with this error")
]
AllOption = Annotated[bool, typer.Option("--all", help="every dead letter")]


@app.command("list")
@examples("sitemapd dead list", "sitemapd dead list --error 'no such section'")
def list_(
    error: ErrorOption = None,
    whole: WholeOption = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """List dead letters by error, the most frequent first; with --error each of them."""
    place = find(home, site)
    dead = DeadLetterActions(place.client(), place.name)
    if error is not None:
        letters = dead.chosen(DeadLetterFilter(error=error))
        shown = letters if as_json or whole else letters[:SHOWN]
        answer([_as_dict(letter) for letter in shown], as_json=as_json)
        if not as_json:
            print_rest(len(letters) - len(shown))
        return
    groups = dead.groups()
    if as_json:
        answer([group._asdict() for group in groups], as_json=True)
        return
    for group in groups:
        span = f"{when(group.first_ms)} to {when(group.last_ms)}: {', '.join(group.examples)}"
        line(f"{group.events:6}  {group.error}  ", (span, "dim"))
        choice = DeadLetterFilter(error=group.error)
        note(f"        to retry: {command('dead', 'retry', *choice.words(), site=place.name)}")
    if not groups:
        line("nothing failed")


def _as_dict(letter: DeadLetter) -> dict[str, object]:
    return {
        "id": letter.id, "event": letter.event, "subject": subject(letter.payload),
        "error": letter.error, "tries": letter.tries, "since": when(letter.since_ms),
    }  # fmt: skip


@app.command()
@examples("sitemapd dead show 1795250964623-0", "sitemapd dead show 1795250964623-0 --json")
def show(
    ident: Annotated[str, typer.Argument(metavar="ID", help="id from `dead list --error`")],
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one dead letter with all its fields, and how to send its event again."""
    place = find(home, site)
    letter = DeadLetterActions(place.client(), place.name).show(ident)
    try:
        lines = curl(Event.load(letter.payload), place.name, place.site.base.origin)
    except SchemaError:
        lines = ""
    found, event = _as_dict(letter), members(letter.payload)
    if as_json:
        answer(found | {"members": event, "curl": lines}, as_json=True)
    else:
        answer(found | {"members": json.dumps(event)}, as_json=False)
        block(lines)


@app.command()
@examples("sitemapd dead retry 1795250964623-0", "sitemapd dead retry --all")
def retry(
    ids: IdsArgument = None,
    error: ErrorOption = None,
    everything: AllOption = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept the events of dead letters again, as the newest events."""
    place, choice = find(home, site), DeadLetterFilter(ids or (), error, everything)
    client = place.client()
    dead = DeadLetterActions(client, place.name)
    act(
        client, "dead retry", place.name, str(choice), lambda _: dead.retry(choice),
        as_json=as_json,
    )  # fmt: skip


@app.command()
@examples(
    "sitemapd dead discard 1795250964623-0",
    "sitemapd dead discard --all --save dead.ndjson",
)
def discard(
    ids: IdsArgument = None,
    error: ErrorOption = None,
    everything: AllOption = False,
    save: SaveOption = None,
    yes: YesOption = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete dead letters, after asking."""
    place, choice = find(home, site), DeadLetterFilter(ids or (), error, everything)
    client = place.client()
    dead = DeadLetterActions(client, place.name)
    letters = dead.chosen(choice)
    ask(f"Delete {counted(len(letters), 'event')} of {place.name}?", yes=yes)
    saved = Saved(save, "dead", place.name) if save else None

    def discarded(_who: str) -> ActionOutcome:
        outcome = dead.discard(choice, saved)
        return saved.told(outcome) if saved else outcome

    act(client, "dead discard", place.name, str(choice), discarded, as_json=as_json)
