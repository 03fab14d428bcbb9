"""Commands about the state: status, entry, confirm, publish."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.cli.examples import examples
from deploy.cli.homes import find_home
from deploy.cli.long_lists import SHOWN, WholeOption, print_rest
from deploy.cli.output import (
    AllSitesOption,
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    find,
    find_any,
    line,
)
from deploy.commands.admin import AdoptOption, recorded
from deploy.commands.changes import say_in_force
from shared.admin.outcomes import counted
from shared.admin.site_status import Inspector, statuses, worst_first
from shared.errors import ConfigError, Fault, InvalidError, PublishError
from shared.store.operations.config_reports import (
    ConfigReport,
    ConfigReports,
    RefusedConfig,
    refused,
)
from shared.store.publishing.shrink_holds import ShrinkHold, ShrinkHolds

if TYPE_CHECKING:
    from shared.sitemap.shards import Shard
    from worker.publishing.publisher import Publisher

PUBLISH_DEADLINE_S = 60


@examples("sitemapd status", "sitemapd status --watch --interval 5")
def status(
    home: HomeOption = None,
    site: AllSitesOption = None,
    as_json: JsonOption = False,
    watch: Annotated[bool, typer.Option("--watch", help="refresh until Ctrl-C")] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="seconds between refreshes")] = 1.0,
    count: Annotated[
        int | None, typer.Option(min=1, help="number of refreshes; default: until interrupted")
    ] = None,
    whole: WholeOption = False,
) -> None:
    """Show the state of each site: pages, files, what waits and for how long. With --watch also the
    rates of events and publishes, and the workers. Of many sites, the worst are shown.
    """
    try:
        place = find_any(home, site)
    except ConfigError:
        say_in_force(find_home(home))
        raise
    names = [name for name in place.settings.sites if site is None or name == site]
    if watch:
        from deploy.commands.watch import watch as look_again

        look_again(place, names, interval=interval, looks=count, as_json=as_json, whole=whole)
        return
    client = place.client()
    answers = statuses(client, {name: place.settings.sites[name] for name in names})
    reports = ConfigReports(client).read()
    bad = refused(reports)
    if as_json:
        kept = {"configuration_refused": bad.plain() if bad else None}
        answer([each | kept for each in answers], as_json=True)
        return
    _say_configuration(bad, reports)
    shown_first = answers if whole or len(answers) <= SHOWN else worst_first(answers)[:SHOWN]
    for each in shown_first:
        held = [_held(hold) for hold in each["held"]]
        asked = [f"{open_['scope']}  since {open_['since']}" for open_ in each["resync"]]
        single = [f"{one['shard']}  {one['reason']}: {one['todo']}" for one in each["quarantined"]]
        stopped, failing = each["stopped"], [_failing(loop) for loop in each["failing"]]
        why = "no" if stopped is None else f"since {stopped['since']}: {stopped['reason']}"
        shown = {"held": held, "resync": asked, "failing": failing, "stopped": why}
        answer(each | shown | {"quarantined": single}, as_json=False)
        if stopped is not None:
            line(f"nothing is published: {stopped['todo']}", style="red")
        if held:
            command = f"sitemapd confirm --site {each['site']}"
            line("new pages and edits of these files wait, too")
            line(f"to publish what is held: {command}")
        if asked:
            source = place.settings.sites[each["site"]].source.get_secret_value()
            command = f"sitemapd reconcile --site {each['site']}"
            command += "" if source else " --against SOURCE"
            line(f"to run the requested resyncs: {command}")
    print_rest(len(answers) - len(shown_first))


def _say_configuration(bad: RefusedConfig | None, reports: Mapping[str, ConfigReport]) -> None:
    """Say why the configuration file is not in force, and what of it waits for a start."""
    if bad is not None:
        for fault in bad.faults:
            line(f"configuration refused: {fault}", style="red")
        line(f"the old configuration stays in force in {', '.join(bad.processes)}")
    if later := sorted({name for each in reports.values() for name in each.next_start}):
        line(f"takes effect at the next start: {', '.join(later)}")


def _failing(loop: Mapping[str, object]) -> str:
    part = f" ({loop['part']})" if loop["part"] else ""
    where = f"{loop['loop']}{part} of {loop['worker']} is {loop['state']}"
    return f"{where} for {loop['for_s']:.0f} s: {loop['reason']}"


def _held(hold: Mapping[str, object]) -> str:
    return f"{hold['shard']}  {hold['from']} -> {hold['to']} pages  since {hold['since']}"


@examples(
    "sitemapd entry https://www.example.com/about",
    "sitemapd entry https://www.example.com/about --site shop --json",
)
def entry(
    url: Annotated[str, typer.Argument(help="URL of the page")],
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the file and the values of a page, and the latest decisions about it."""
    place = find(home, site)
    found = Inspector(place.client(), place.name, place.site).entry(url)
    held: dict[str, Any] = {}
    if "held" in found and not as_json:
        held["held"] = _held(found["held"])
    if "looked" in found and not as_json:
        held["looked"] = _looked(found["looked"])
    if not as_json:
        held["lately"] = [each | {"event": each["event"] or "no event"} for each in found["lately"]]
    answer(found | held, as_json=as_json)
    raise typer.Exit(0 if found["listed"] else 1)


def _looked(look: Mapping[str, Any]) -> str:
    said = f"{look['grade']} at {look['at']}: {look.get('why') or look['status']}"
    if "before" in look:
        said += f"; changed {look['changed']}, {look['before']} -> {look['fingerprint']}"
    return said


@examples("sitemapd confirm", "sitemapd confirm posts/1 --site shop")
def confirm(
    shard: Annotated[
        list[str] | None,
        typer.Argument(help="shards as shown by `status`, e.g. posts/1; default: all held ones"),
    ] = None,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let files that the shrink guard holds shrink to the shown number of pages. To reject the
    deletions instead, send the pages again (sitemapd import).
    """
    place = find(home, site)
    client = place.client()
    with recorded(client, "confirm", place.name, " ".join(shard or ())) as said:
        chosen = _let_go(ShrinkHolds(client, place.name), shard)
        for name, hold in chosen:
            said(f"{name} may shrink from {hold.reference:,} to {hold.urls:,} pages")
        if not chosen:
            said("nothing is held")
    let_go = [
        {"shard": str(name), "from": hold.reference, "to": hold.urls} for name, hold in chosen
    ]
    if as_json:
        answer({"confirmed": let_go}, as_json=True)
        return
    for each in let_go:
        line(f"{each['shard']}  {each['from']} -> {each['to']} pages")
    line("published within seconds" if let_go else "nothing is held")


def _let_go(holds: ShrinkHolds, shards: list[str] | None) -> list[tuple[Shard, ShrinkHold]]:
    """Confirm `shards`, by default all that are held. Raises InvalidError if one of them is not."""
    held = {str(name): (name, hold) for name, hold in holds.held().items()}
    if unknown := [name for name in shards or () if name not in held]:
        detail = f"not held; held are: {', '.join(held) or 'none'}"
        raise InvalidError(Fault(", ".join(unknown), "held", detail))
    chosen = [held[name] for name in dict.fromkeys(shards or held)]
    holds.confirm({name: hold.urls for name, hold in chosen})
    return chosen


@examples("sitemapd publish", "sitemapd publish --adopt --site shop")
def publish(
    home: HomeOption = None,
    site: SiteOption = None,
    adopt: AdoptOption = False,
    whole: WholeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Publish what waits now, regardless of the publish interval."""
    from deploy.commands.verify import audit_of, report_touched

    place = find(home, site)
    publisher = audit_of(place).publisher
    with recorded(place.client(), "publish", place.name) as said:
        if adopt:
            publisher.adopt()
            said("existing files adopted")
        touched = _publish(publisher)
        said(f"{counted(len(touched), 'file')} written or removed")
    report_touched(touched, {}, as_json=as_json, whole=whole)


def _publish(publisher: Publisher) -> list[str]:
    """Publish what waits; return the files that were written or removed. Raises PublishError."""
    from worker.checks.verify import raise_damaged

    touched: list[str] = []
    deadline = time.monotonic() + PUBLISH_DEADLINE_S
    while publisher.waiting(1):
        done = publisher.publish()
        if done is not None and (done.shards or done.held):
            touched += done.written + done.removed
        elif (left := publisher.waiting()) and set(left) <= publisher.damaged.keys():
            raise_damaged(publisher.damaged)
        elif time.monotonic() > deadline:
            raise PublishError(
                "some files could not be written: see the worker's log, or try again"
            )
        else:
            time.sleep(0.02)
    return touched
