"""Overview of all sites: present state, the last hour, concerns; and the action that confirms a
shrink hold.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from werkzeug.datastructures import MultiDict

from shared.admin.site_status import Inspector
from shared.errors import Fault, InvalidError
from shared.sitemap.shards import Shard
from shared.store.counting.counters import Counters
from shared.store.operations.checks import ERROR, CheckReport, CheckStore, ComparisonSummary
from shared.store.operations.queues import EVENTS, INTAKE, NOTIFY, PUBLISH
from shared.store.operations.resync_requests import ResyncRequests
from shared.store.operations.worker_registry import WorkerRegistry
from shared.store.publishing.shrink_holds import ShrinkHolds
from webhook.console.page_registry import ActionDone, PageRegistry, Shown, query_arg
from webhook.console.presentation import check_results, hourly_charts, template_filters
from webhook.console.views import workers

SITES = 50
"""Sites on one page: each costs some round trips to Redis."""
LATE_S = 60
"""Seconds after which a waiting file is a concern: a publish takes milliseconds."""

NAMED = 5
"""Quarantined shards that are named for each site."""

PAUSED = {
    EVENTS: "events are paused",
    PUBLISH: "publishing is paused",
    NOTIFY: "notifications are paused",
    INTAKE: "the intake is closed",
}


class Concern(NamedTuple):
    """A state that needs an administrator: `grade` bad or warn, description, remedy, a command, and
    the endpoint of the page that shows it.
    """

    grade: str
    said: str
    todo: str
    command: Sequence[str] = ()
    see: str = ""


def install(registry: PageRegistry) -> None:
    """Register the page Overview, and the action `confirm`."""
    services = registry.services

    def show() -> Shown:
        names = list(services.sites)
        asked, last = query_arg("page"), max(len(names) - 1, 0) // SITES
        at = min(int(asked), last) if asked.isascii() and asked.isdigit() else 0
        shown = names[at * SITES : (at + 1) * SITES]
        found = WorkerRegistry(services.client, shown).list()
        values = {
            "cards": [_card(registry, name) for name in shown],
            "workers": [(worker.name, *workers.state(worker)) for worker in found],
            "alert": workers.alert([each for each in found if each.alive]) if shown else "",
            "newer": registry.address("Overview", page=str(at - 1)) if at else "",
            "older": registry.address("Overview", page=str(at + 1))
            if len(names) > (at + 1) * SITES else "",
        }  # fmt: skip
        return Shown("overview.html", values)

    def confirm(form: MultiDict[str, str]) -> ActionDone:
        name, asked = form.get("site", ""), form.get("subject", "")
        if name not in services.sites:
            raise InvalidError(Fault("site", "config", f"{name[:80]!r} is not configured"))
        holds = ShrinkHolds(services.client, name)
        found = [
            (shard, hold) for shard, hold in holds.held().items()
            if str(shard) == asked and str(hold.urls) == form.get("urls")
        ]  # fmt: skip
        if not found:
            detail = "is not held any more, or at another number of pages: reload the page"
            raise InvalidError(Fault(asked, "held", detail))
        ((shard, hold),) = found
        holds.confirm({shard: hold.urls})
        said = f"{shard} may shrink from {hold.reference:,} to {hold.urls:,} pages"
        return ActionDone(said, name, asked)

    registry.page("Overview", "/", show, live=True)
    registry.action("confirm", "/confirm", confirm)


def _card(registry: PageRegistry, name: str) -> Mapping[str, Any]:
    """Return the values of one site."""
    client, sourced = registry.services.client, bool(registry.services.sites[name].source)
    status = _consistent_status(registry.services.inspector(name))
    report, against = CheckStore(client, name).last()
    found = [*concerns(name, status, sourced=sourced), *doubts(report, against)]
    grade = min((concern.grade for concern in found), default="")  # bad before warn
    busy = status["waiting_events"] or status["dirty_files"]
    state = {"bad": "Needs you", "warn": "Look here"}.get(
        grade, "Working" if busy else "Up to date"
    )
    last = max(
        ResyncRequests(client, name).last_ms() if sourced else 0, against.at_ms if against else 0
    )
    return {
        **status, "concerns": found, "grade": grade or ("busy" if busy else "good"), "state": state,
        **hourly_charts.drawn(Counters(client, name).minutes(hourly_charts.MINUTES), name),
        "drift": status["urls"] - status["published_urls"],
        "sourced": sourced, "compared": last / 1000 or None, "report": report,
        "checked": check_results.summary(check_results.of_check(report)) if report else "",
        "held": [hold | {"command": _confirming(name, hold["shard"])} for hold in status["held"]],
    }  # fmt: skip


def _consistent_status(inspector: Inspector) -> Mapping[str, Any]:
    """Return the status of a site, read again if a publish came between its counts, which are no
    snapshot, and made them differ.
    """
    status = inspector.status()
    return inspector.status() if drifts(status) else status


def drifts(status: Mapping[str, Any]) -> bool:
    """Return True if the files list other pages than the state although no work waits."""
    at_work = status["waiting_events"] or status["dirty_files"] or status["held"]
    return not at_work and bool(status["urls"] != status["published_urls"])


def concerns(name: str, status: Mapping[str, Any], *, sourced: bool) -> Iterator[Concern]:
    """Yield the concerns in a site's `status` (shared/admin/site_status.py)."""
    if stopped := status["stopped"]:
        todo = f"What to do: {stopped['todo']}."
        yield Concern("bad", f"Nothing is published: {stopped['reason']}.", todo)
    for single in status["quarantined"][:NAMED]:
        said = f"The file of {single['shard']} is not published: {single['reason']}."
        yield Concern("bad", said, f"What to do: {single['todo']}.")
    if dead := status["dead_events"]:
        failed = template_filters.plural(dead, "event")
        said = f"{failed} failed five times and {'is' if dead == 1 else 'are'}"
        todo = "Their changes are not published."
        yield Concern("bad", f"{said} set aside.", todo, see="console.failed")
    for each in status["failing"]:
        what = f"{each['loop']} ({each['part']})" if each["part"] else each["loop"]
        ago = template_filters.span(each["for_s"])
        said = f"{what.capitalize()} of the worker {each['worker']} is {each['state']} for {ago}."
        yield Concern("bad", said, each["reason"], see="console.workers")
    if paused := status["paused"]:
        said = "; ".join(PAUSED[queue] for queue in paused if queue in PAUSED)
        todo = "It lasts until it is resumed."
        yield Concern("warn", f"{said[:1].upper()}{said[1:]}.", todo, see="console.queues")
    if status["dirty_for_s"] > LATE_S:
        late = template_filters.span(status["dirty_for_s"])
        todo = (
            "Check that a worker is alive and can write, and that the disk has space. This "
            "command lists the differences:"
        )
        yield Concern(
            "bad", f"Files have waited {late} to be published.", todo, _of(name, "verify")
        )
    if held := status["held"]:
        files = template_filters.plural(len(held), "file")
        said = f"The shrink guard holds {files} that would lose many pages."
        todo = (
            "Their new pages and edits wait, too. Confirm below if this is intended; else send the "
        )
        yield Concern("warn", said, f"{todo}pages again.")
    if drifts(status):
        said = f"The state lists {status['urls']:,} pages, its files {status['published_urls']:,}."
        todo = (
            "No pending change explains this. This command lists the differences; sitemapd "
            "rebuild repairs them:"
        )
        yield Concern("bad", said, todo, _of(name, "verify"))
    if asked := status["resync"]:
        resyncs = template_filters.plural(len(asked), "resync")
        said = f"{resyncs} waits for a comparison with the source."
        more = () if sourced else ("--against", "SOURCE")
        todo = "" if sourced else "The site has no source configured: add one."
        yield Concern("warn", said, todo, (*_of(name, "reconcile"), *more))


def doubts(report: CheckReport | None, compared: ComparisonSummary | None) -> Iterator[Concern]:
    """Yield the concerns in the last check and in the last comparison with a source."""
    if report and (wrong := check_results.wrong(check_results.of_check(report), ERROR)):
        ago = _passed(report.ended_ms)
        said = f"Checked {ago}: {template_filters.plural(len(wrong), 'error')}."
        yield Concern("bad", said, f"{', '.join(wrong)}.", see="console.checks")
    if compared and (found := check_results.differing(compared)):
        counts = ", ".join(f"{template_filters.number(count)} {what}" for what, count in found)
        said = f"Compared with the source {_passed(compared.at_ms)}: {counts}."
        yield Concern("bad", said, "", see="console.checks")


def _passed(at_ms: int) -> str:
    return f"{template_filters.span(max(0.0, time.time() - at_ms / 1000))} ago"


def _of(name: str, command: str) -> tuple[str, ...]:
    return ("sitemapd", command, "--site", name)


def _confirming(name: str, shard: Shard | str) -> tuple[str, ...]:
    return ("sitemapd", "confirm", str(shard), "--site", name)
