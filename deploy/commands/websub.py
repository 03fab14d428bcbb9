"""The commands `websub list|subscribe|unsubscribe`: subscriptions to feeds at their hubs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deploy.cli.examples import examples
from deploy.cli.output import CommandTarget, HomeOption, JsonOption, SiteOption, answer, find
from deploy.commands.admin import actor
from shared.admin.outcomes import ActionOutcome, command
from shared.clock import now_ms
from shared.config.notify import hubs
from shared.errors import ConfigError, Fault
from shared.sitemap import w3c_dates
from shared.store.notify.subscriptions import Subscription
from worker.notify.websub_subscriber import NAME, SiteHubs

app = typer.Typer(
    help="WebSub subscriptions: feeds whose hubs push changes to the webhook.", no_args_is_help=True
)

FeedsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[FEED]...", help="feeds; default: all of the site")
]


@app.command("list")
@examples("sitemapd websub list", "sitemapd websub list --json")
def list_(home: HomeOption = None, site: SiteOption = None, as_json: JsonOption = False) -> None:
    """List every feed: its hub, the state and end of the subscription, and errors."""
    place = find(home, site)
    desk, now = _desk(place), now_ms()
    known = {one.topic: one for one in desk.subscriptions.all()}
    feeds = [*desk.connection.topics, *sorted(known.keys() - set(desk.connection.topics))]
    answer([_row(known.get(feed, Subscription(feed)), now) for feed in feeds], as_json=as_json)


@app.command()
@examples("sitemapd websub subscribe", "sitemapd websub subscribe https://blog.example.com/feed")
def subscribe(
    feeds: FeedsArgument = None, home: HomeOption = None, site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Ask the hubs now, regardless of earlier answers. Exit code 1 if one refuses."""
    _ask(find(home, site), hubs.SUBSCRIBE, feeds, as_json=as_json)


@app.command()
@examples(
    "sitemapd websub unsubscribe",
    "sitemapd websub unsubscribe https://blog.example.com/feed",
)
def unsubscribe(
    feeds: FeedsArgument = None, home: HomeOption = None, site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Ask the hubs to stop; further deliveries are ignored until `subscribe`."""
    _ask(find(home, site), hubs.UNSUBSCRIBE, feeds, as_json=as_json)


def _ask(place: CommandTarget, mode: str, feeds: list[str] | None, *, as_json: bool) -> None:
    desk = _desk(place)
    configured = desk.connection.topics
    if unknown := [feed for feed in feeds or () if feed not in configured]:
        detail = f"not a feed of sources.{NAME}; configured: {', '.join(configured)}"
        raise ConfigError(Fault(", ".join(unknown), "config", detail))
    desk.subscriptions.add(configured, now_ms())
    me = actor(place.client())
    rows, failed = [], False
    for feed in feeds or configured:
        desk.want(feed, mode)
        outcome = desk.ask(feed)
        said = "the worker is asking the hub" if outcome is None else (
            f"{outcome.verdict} {outcome.detail}".strip()
        )  # fmt: skip
        failed |= outcome is not None and not outcome.told
        line = command(NAME, mode, feed, site=place.name)
        me.record(ActionOutcome(f"{NAME} {mode}", place.name, feed, said, line))
        rows.append({"feed": feed, "mode": mode, "outcome": said})
    answer(rows, as_json=as_json)
    raise typer.Exit(1 if failed else 0)


def _desk(place: CommandTarget) -> SiteHubs:
    if NAME not in place.site.sources:
        detail = f"is not configured; `{command('connect', NAME, site=place.name)}` says how"
        raise ConfigError(Fault(f"sites.{place.name}.sources.{NAME}", "config", detail))
    return SiteHubs(place.client(), place.name, place.site)


def _row(one: Subscription, now: int) -> dict[str, Any]:
    lapsed = one.mode == hubs.SUBSCRIBE and 0 < one.until <= now
    return {
        "feed": one.topic,
        "hub": one.hub or None,
        "mode": one.mode,
        "state": "lapsed" if lapsed else one.state,
        "until": _time(one.until),
        "next": _time(one.due),
        "why": one.why or None,
    }


def _time(at: int) -> str | None:
    return w3c_dates.from_epoch_s(at // 1000) if at else None
