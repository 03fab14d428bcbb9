"""Page of the queues: backlog of each, and the actions pause, resume, drain, purge, put back."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from flask import g
from werkzeug.datastructures import MultiDict

from shared.admin.events import stored_lines
from shared.admin.outcomes import ActionOutcome
from shared.admin.queues import QueueRow
from shared.errors import Fault, InvalidError
from shared.store.operations.queues import EVENTS, INTAKE, NOTIFY, PAUSABLE, PUBLISH
from shared.store.operations.site_snapshot import SnapshotReader
from webhook.console.page_registry import ActionDone, PageRegistry, Shown, query_arg
from webhook.console.presentation import charts, form_fields, table_rows, template_filters
from webhook.console.views import fleet

SAMPLE = 10
MOST_BACK = 100_000
"""Events of a purge that the console puts back at most; the command line puts back more."""
TITLES = {
    INTAKE: ("Intake", "Accepts deliveries of senders into the inbox.", "accepted"),
    EVENTS: ("Events", "Accepted events that wait for a decision.", "decided"),
    PUBLISH: ("Publishing", "Files with decided changes that are not written yet.", "publishes"),
    NOTIFY: (
        "Notifications",
        "Pages of which search engines are still to be notified.",
        "notified",
    ),
}
"""Title, content and counted unit of each queue."""

_STATES = ("running", "paused"), ("open", "closed")


class Kept(NamedTuple):
    """A purge that is kept: its name, its time (s since 1970), its number of events."""

    name: str
    at: float
    events: int


def install(registry: PageRegistry) -> None:
    """Register the page Queues with its actions, and the confirmation page of a purge."""
    services, done = registry.services, partial(_done, registry)
    snapshots = SnapshotReader(dict.fromkeys(services.sites, ()), "nothing")

    def show() -> Shown:
        if registry.every_site():
            return fleet.queues(registry, snapshots)
        name = registry.site()
        queues = services.queues(name)
        kept = [Kept(each, int(each) / 1000, events) for each, events in queues.purges().items()]
        values: dict[str, Any] = {
            "name": name, "cards": [_card(name, row) for row in queues.rows()],
            "left": queues.waiting(), "idle": services.idle(), "kept": kept[::-1],
            "messages": services.messages(), "most_back": MOST_BACK,
        }  # fmt: skip
        return Shown("queues.html", values)

    def pause(form: MultiDict[str, str]) -> ActionDone:
        name, queue = form_fields.site_of(services, form), form.get("queue", "")
        outcome = services.queues(name).pause(queue, g.user)
        return done(name, outcome)

    def resume(form: MultiDict[str, str]) -> ActionDone:
        name, queue = form_fields.site_of(services, form), form.get("queue", "")
        outcome = services.queues(name).resume(queue)
        services.waker.wake(name)
        return done(name, outcome)

    def ask_drain() -> Shown:
        name = registry.site()
        values = {"name": name, "left": services.queues(name).waiting(), "command": _drain(name)}
        return Shown("drain.html", values)

    def drain(form: MultiDict[str, str]) -> ActionDone:
        name = form_fields.site_of(services, form)
        outcome = services.queues(name).drain(g.user)
        services.waker.wake(name)
        return done(name, outcome)

    registry.page("Queues", "/queues", show, per_site=True, live=True, all_sites=True)
    registry.part("Queues", "drain", "/queues/drain/ask", ask_drain)
    registry.action("queue pause", "/queues/pause", pause)
    registry.action("queue resume", "/queues/resume", resume)
    registry.action("queue drain", "/queues/drain", drain)
    _purging(registry)


def _purging(registry: PageRegistry) -> None:
    services, done = registry.services, partial(_done, registry)

    def ask() -> Shown:
        name = registry.site()
        queues = services.queues(name)
        values = {
            "name": name, "events": queues.waiting().events,
            "sample": [table_rows.of_queued(queued) for queued in queues.oldest(SAMPLE)],
            "command": ("sitemapd", "queue", "purge", "--site", name),
        }  # fmt: skip
        return Shown("purge.html", values)

    def purge(form: MultiDict[str, str]) -> ActionDone:
        name = form_fields.site_of(services, form)
        queues = services.queues(name)
        form_fields.expect(form, queues.waiting().events)
        outcome = queues.purge()
        return done(name, outcome)

    def put_back(form: MultiDict[str, str]) -> ActionDone:
        name, purged = form_fields.site_of(services, form), form.get("purge", "")
        queues = services.queues(name)
        if queues.purges().get(purged, 0) > MOST_BACK:
            most = template_filters.number(MOST_BACK)
            detail = f"more than {most} events: restore it on the command line"
            raise InvalidError(Fault(purged, "purge", detail))
        events = stored_lines(queues.kept(purged))
        outcome = services.events(name).replay(events, (f"purge {purged}",), newest=False)
        services.waker.wake(name)
        return done(name, outcome)

    def save() -> tuple[str, Iterable[bytes]]:
        name, purged = registry.site(), query_arg("purge")
        return f"{name}-purged-{purged}.ndjson", services.queues(name).kept(purged)

    registry.part("Queues", "purge", "/queues/purge", ask)
    registry.download("purged", "/queues/purged", save)
    registry.action("queue purge", "/queues/purge/now", purge)
    registry.action("queue put back", "/queues/put-back", put_back)


def _done(registry: PageRegistry, name: str, outcome: ActionOutcome) -> ActionDone:
    return ActionDone(
        outcome.said, name, outcome.subject, back=registry.address("Queues", site=name)
    )


def _card(name: str, row: QueueRow) -> dict[str, Any]:
    title, said, counted = TITLES[row.queue]
    total = template_filters.number(sum(row.minutes))
    paused, intake = row.paused, row.queue == INTAKE
    pause = ("sitemapd", "queue", "pause", row.queue, "--site", name)
    return {
        "row": row, "title": title, "said": said, "counted": counted,
        "means": PAUSABLE[row.queue], "grade": "warn" if paused else "",
        "state": _STATES[intake][paused is not None],
        "since": paused.since_ms / 1000 if paused else None,
        "oldest": None if row.oldest_ms is None else row.oldest_ms / 1000,
        "spark": charts.spark(row.minutes, f"{total} {counted} within the last 30 minutes"),
        "stop": _drain(name) if intake else pause,
        "go": ("sitemapd", "queue", "resume", row.queue, "--site", name),
    }  # fmt: skip


def _drain(name: str) -> tuple[str, ...]:
    return ("sitemapd", "queue", "drain", "--site", name)
