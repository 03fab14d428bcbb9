"""The commands `event list|show|replay`."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from deploy.cli.examples import examples
from deploy.cli.output import (
    CommandTarget,
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    ask,
    block,
    find,
    line,
)
from deploy.commands.admin import YesOption, actor, say, when
from shared.admin.curl import curl
from shared.admin.events import KINDS, EventActions, EventFilter, StoredEvent, stored_lines, told
from shared.admin.outcomes import ActionOutcome, counted
from shared.admin.timeline import Timeline, Timelines
from shared.errors import Fault, InvalidError, UrlError
from shared.events.event import Event, SchemaError
from shared.sitemap import urls
from shared.store.publishing.revisions import ChangedLine

UrlOption = Annotated[
    str,
    typer.Option("--url", help="events about this page; URL* and *PART* match several"),
]
ReasonOption = Annotated[
    str, typer.Option("--reason", help="events whose reason contains this text")
]
KindOption = Annotated[str, typer.Option("--kind", help="one of " + ", ".join(KINDS))]
SinceOption = Annotated[str, typer.Option("--since", help="W3C datetime, or an age: 30m, 2h, 1d")]


@examples("sitemapd event list --since 2h", "sitemapd event list --kind refused --limit 10")
def list_(
    url: UrlOption = "",
    reason: ReasonOption = "",
    kind: KindOption = "",
    since: SinceOption = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="maximum number of rows")] = 50,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the latest events and refusals with their decisions, newest first."""
    place = find(home, site)
    wanted = _wanted(place, url, reason, kind, since)
    found = list(islice(_actions(place).latest(wanted), limit))
    if as_json:
        answer([told(past) for past in found], as_json=True)
        return
    for past in found:
        request = past.said.get("request") or past.said.get("source") or ""
        subject = f"{past.subject}: " if past.subject else ""
        head = f"{when(past.at_ms)}  {past.event or request:18} {past.kind:8} {subject}"
        line(head, (past.reason, "bold"))


@examples(
    "sitemapd event show https://www.example.com/about",
    "sitemapd event show 1795250964623-0 --json",
)
def show(
    asked: Annotated[
        str, typer.Argument(metavar="ID|URL", help="id of an event or request, or URL of a page")
    ],
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one event from arrival to file: decision, file, duration, changed lines. For a URL: the
    last event about it.
    """
    place = find(home, site)
    found = Timelines(place.client(), place.name, place.site).show(asked)
    again = _curl(found, place)
    if as_json:
        answer(_as_dict(found) | {"curl": again}, as_json=True)
        return
    line(f"{found.ident}  {found.subject}  ", (found.state, "bold"))
    for step in found.steps:
        after = "" if step.after_ms is None else f"  {step.after_ms} ms after it came"
        line(f"{when(step.at_ms):25} {step.step:10} {step.what}", (after, "dim"))
    for each in found.lines:
        for mark, text, style in (("-", each.before, "red"), ("+", each.after, "green")):
            if text is not None:
                line(f"{mark} {text.decode().rstrip()}", style=style)
    if again:
        block(again)


def _as_dict(found: Timeline) -> dict[str, Any]:
    return {
        "id": found.ident, "subject": found.subject, "state": found.state, "event": found.event,
        "steps": [step._asdict() for step in found.steps],
        "lines": [_line(line) for line in found.lines],
    }  # fmt: skip


def _line(line: ChangedLine) -> dict[str, str | None]:
    return {
        "before": None if line.before is None else line.before.decode().rstrip(),
        "after": None if line.after is None else line.after.decode().rstrip(),
    }


def _curl(found: Timeline, place: CommandTarget) -> str:
    try:
        return curl(Event.load(found.payload), place.name, place.site.base.origin)
    except SchemaError:
        return ""


@examples(
    "sitemapd event replay 1795250964623-0",
    "sitemapd event replay --matching --since 1h --yes",
)
def replay(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="ids of events")
    ] = None,
    matching: Annotated[
        bool,
        typer.Option(
            "--matching", help="every event that matches --url, --reason, --kind and --since"
        ),
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--file", help="file saved by `queue purge` or `dead discard`")
    ] = None,
    url: UrlOption = "",
    reason: ReasonOption = "",
    kind: KindOption = "",
    since: SinceOption = "",
    as_sent: Annotated[
        bool, typer.Option("--as-sent", help="keep their versions, so that newer events still win")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="do not notify search engines")] = False,
    yes: YesOption = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept events again, after asking: as the newest, so that they win over later ones; those of
    a file as they were sent.
    """
    place = find(home, site)
    actions, wanted = _actions(place), _wanted(place, url, reason, kind, since)
    if bool(ids) + matching + (file is not None) != 1:
        raise InvalidError(Fault("ID", "event", "give ids, or --matching, or --file FILE"))
    words = [*ids] if ids else ["--matching", *wanted.words()] if matching else [f"--file={file}"]
    events = _chosen(actions, ids, wanted, file)
    if not events:
        say(ActionOutcome("event replay", place.name, "", "no event", ""), as_json=as_json)
        return
    ask(f"Accept {counted(len(events), 'event')} of {place.name} again?", yes=yes)
    me, newest = actor(place.client()), not as_sent and file is None
    words += [word for word, on in (("--as-sent", as_sent), ("--quiet", quiet)) if on]
    words += [f"--since={since}"] if since else []
    with me.doing("event replay", place.name, " ".join(words)):
        outcome = actions.replay(events, words, newest=newest, quiet=quiet)
    say(me.record(outcome), as_json=as_json)


def _actions(place: CommandTarget) -> EventActions:
    return EventActions(place.client(), place.name, place.settings.inbox_limit)


def _chosen(
    actions: EventActions, ids: list[str] | None, wanted: EventFilter, file: Path | None
) -> list[StoredEvent]:
    if ids:
        return actions.stored(ids)
    if file is None:
        return actions.matching(wanted)
    try:
        return stored_lines(file.read_bytes().splitlines())
    except OSError as error:
        raise InvalidError(Fault(str(file), "file", error.strerror or "")) from error


def _wanted(place: CommandTarget, url: str, reason: str, kind: str, since: str) -> EventFilter:
    with suppress(UrlError):  # the beginning of one, or `id 7`
        url = urls.canonical(url, place.site.base) if url[-1:] not in {"", "*"} else url
    return EventFilter.of(url, reason, kind, since)
