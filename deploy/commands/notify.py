"""The commands `notify test|key|list|dead|replay`: notifications of search engines."""

from __future__ import annotations

import os
import random
import secrets
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.cli.examples import examples
from deploy.cli.long_lists import SHOWN, WholeOption, print_rest
from deploy.cli.output import (
    CommandTarget,
    FormerSite,
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    block,
    find,
    line,
)
from deploy.commands.admin import recorded
from shared.admin.outcomes import counted
from shared.clock import now_ms
from shared.errors import ConfigError, Fault
from shared.sitemap import w3c_dates
from shared.store.notify.notification_queue import NotificationQueue, RequestRecord

if TYPE_CHECKING:
    from worker.notify.dispatcher import Dispatcher
    from worker.notify.engine import NotificationOutcome


app = typer.Typer(help="Notifications sent to search engines.", no_args_is_help=True)


@app.command("test")
@examples("sitemapd notify test", "sitemapd notify test --send --site shop")
def try_out(
    former: FormerSite = None,
    send: Annotated[
        bool, typer.Option("--send", help="send the requests, and fetch the IndexNow key file")
    ] = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the request that each engine would get for the home page. Exit code 1 if one refuses it.

    With --send, an engine that accepts it is used again if it was left alone.
    """
    from worker.http.exchange import excerpt
    from worker.notify import dry_run

    place = find(home, site or former)
    dispatcher, page = _dispatcher(place), place.site.base.url("")
    rows = [
        {
            "engine": name,
            "sends": [
                f"{draft.method} {draft.shown}  {excerpt(draft.body)}".strip()
                for draft in dry_run.drafts(api, page)
            ],
        }
        for name, api in dispatcher.engine_apis.items()
    ]
    failed = False
    for row in rows if send else []:
        outcomes = dry_run.send(dispatcher, str(row["engine"]), page, now_ms())
        row["answers"] = [_said(outcome) for outcome in outcomes]
        failed |= not all(outcome.told for outcome in outcomes)
    answer(rows, as_json=as_json)
    raise typer.Exit(1 if failed else 0)


@app.command()
@examples("sitemapd notify key", "sitemapd notify key --site shop")
def key(
    former: FormerSite = None,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a new IndexNow key, and show where it goes. The worker writes its file."""
    place, made = find(home, site or former), secrets.token_hex(16)
    table = f"[sites.{place.name}.notify.indexnow]"
    if as_json:
        url = place.site.base.url(f"{made}.txt")
        answer({"site": place.name, "key": made, "url": url}, as_json=True)
        return
    block(f'{table}\nkey = "{made}"')


@app.command("list")
@examples("sitemapd notify list", "sitemapd notify list --site shop --json")
def list_(
    former: FormerSite = None,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """List per engine what waits, today's budget and pauses; and the latest requests."""
    place = find(home, site or former)
    notices, now = NotificationQueue(place.client(), place.name), now_ms()
    engines = [_engine(place, notices, name, now) for name in place.site.notify.engines]
    records = [_record_of(record) for record in notices.records(SHOWN)]
    if as_json:
        answer({"site": place.name, "engines": engines, "fates": records}, as_json=True)
        return
    answer(engines, as_json=False)
    for record in records:
        words = " ".join(str(record[name]) for name in ("at", "engine", "outcome", "status"))
        line(f"{words}  {record['pages']} pages  {record['ms']} ms  {record['detail']}".rstrip())


@app.command()
@examples("sitemapd notify dead", "sitemapd notify dead --json")
def dead(
    former: FormerSite = None,
    whole: WholeOption = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the notifications that were given up, and why. `sitemapd notify replay` sends them
    again.
    """
    place = find(home, site or former)
    letters = [
        {
            "engine": letter.engine, "since": w3c_dates.from_epoch_s(letter.at // 1000),
            "pages": len(letter.locs), "why": letter.why, "urls": list(letter.locs),
        }
        for letter in NotificationQueue(place.client(), place.name).dead()
    ]  # fmt: skip
    if as_json:
        answer(letters, as_json=True)
        return
    for letter in letters:
        urls: Any = letter.pop("urls")
        shown = urls if whole else urls[:SHOWN]
        answer(letter | {"urls": shown}, as_json=False)
        print_rest(len(urls) - len(shown))


@app.command()
@examples("sitemapd notify replay", "sitemapd notify replay --engine indexnow")
def replay(
    former: FormerSite = None,
    engine: Annotated[
        list[str] | None, typer.Option("--engine", help="engines; default: all configured ones")
    ] = None,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send the notifications that were given up again, and end the pauses of their engines."""
    place = find(home, site or former)
    configured = list(place.site.notify.engines)
    if unknown := [name for name in engine or () if name not in configured]:
        detail = f"not configured for {place.name}; there are: {', '.join(configured) or 'none'}"
        raise ConfigError(Fault(", ".join(unknown), "config", detail))
    client, engines = place.client(), engine or configured
    with recorded(client, "notify replay", place.name, " ".join(engines)) as said:
        count = NotificationQueue(client, place.name).replay(engines, now_ms())
        said(f"{counted(count, 'page')} queued again, and all pauses ended")
    answer({"replayed": count}, as_json=as_json)


def _dispatcher(place: CommandTarget) -> Dispatcher:
    from worker.http.client import ask
    from worker.notify.dispatcher import Dispatcher

    return Dispatcher(
        place.client(), place.name, place.site, f"cli-{os.getpid()}", clock=now_ms, outbound=ask,
        jitter=random.random,
    )  # fmt: skip


def _said(outcome: NotificationOutcome) -> str:
    return " ".join(str(part) for part in (outcome.verdict, outcome.status or "", outcome.detail))


def _engine(
    place: CommandTarget, notices: NotificationQueue, name: str, now: int
) -> dict[str, Any]:
    figures = notices.figures(name, now)
    at = figures.pop("next")
    return {
        "engine": name,
        **figures,
        "daily": place.site.notify.engines[name].daily,
        "next": None if at is None else w3c_dates.from_epoch_s(at // 1000),
        "left_alone": [
            {
                "endpoint": endpoint,
                "until": "replay"
                if breaker.paused
                else w3c_dates.from_epoch_s(breaker.until // 1000),
                "why": breaker.why,
            }
            for (engine, endpoint), breaker in notices.breakers().items()
            if engine == name and breaker.open(now)
        ],
    }


def _record_of(record: RequestRecord) -> dict[str, Any]:
    again = w3c_dates.from_epoch_s(record.next // 1000) if record.next else None
    return record._asdict() | {"at": w3c_dates.from_epoch_s(record.at // 1000), "next": again}
