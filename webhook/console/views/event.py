"""Page of one event: timeline, changed lines, and the action that accepts it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from werkzeug.datastructures import MultiDict

from shared.admin.curl import curl
from shared.admin.timeline import Timeline
from shared.errors import InvalidError
from shared.events.event import Event, SchemaError
from webhook.console.page_registry import ActionDone, PageRegistry, Shown, query_arg
from webhook.console.presentation import diff, form_fields

STATES: Mapping[str, tuple[str, str, str]] = {
    "waiting": ("busy", "Waiting", "Accepted and stored durably; not decided yet."),
    "in flight": ("busy", "With a worker", "A worker has read it and not decided it yet."),
    "applied": (
        "busy",
        "Decided, not published",
        "The file that lists its page is not written yet.",
    ),
    "held": (
        "warn",
        "Held by the shrink guard",
        "Its file would lose many pages: confirm the removals.",
    ),
    "published": ("good", "Published", ""),
    "unchanged": ("quiet", "Nothing changed", "The page was listed like this already."),
    "dead": ("bad", "Failed", "It failed five times and was moved to the dead letters."),
    "refused": (
        "bad",
        "Refused at intake",
        "None of its events was accepted.",
    ),
    "unknown": ("quiet", "Not known", "The event log no longer covers it."),
}
"""A grade, a few words and a sentence for each state of a timeline."""
_MAY_CHANGE = frozenset({"waiting", "in flight", "applied", "held"})


def install(registry: PageRegistry) -> None:
    """Register the page of an event, and the action `event replay`."""
    services = registry.services

    def show() -> Shown:
        name, asked = registry.site(), query_arg("id")
        values: dict[str, Any] = {"name": name, "asked": asked, "still": True}
        try:
            found = services.timelines(name).show(asked)
        except InvalidError as error:
            return Shown("event.html", values | {"found": None, "problem": str(error)}, 404)
        return Shown("event.html", values | _values(registry, name, found))

    def replay(form: MultiDict[str, str]) -> ActionDone:
        name, ident = form_fields.site_of(services, form), form.get("id", "")
        actions, as_sent = services.events(name), bool(form.get("as_sent"))
        words = [ident, "--as-sent"] if as_sent else [ident]
        outcome = actions.replay(actions.stored([ident]), words, newest=not as_sent)
        services.waker.wake(name)
        back = registry.address("Event", site=name, id=outcome.ids[0])
        return ActionDone(outcome.said, name, outcome.subject, back=back)

    registry.part("Events", "event", "/events/one", show, live=True)
    registry.action("event replay", "/events/replay", replay)


def _values(registry: PageRegistry, name: str, found: Timeline) -> dict[str, Any]:
    site, services = registry.services.sites[name], registry.services
    waits, steps = found.state in {"waiting", "in flight"}, {step.step for step in found.steps}
    return {
        "found": found, "problem": "", "verdict": STATES[found.state],
        "still": found.state not in _MAY_CHANGE and "to be told" not in steps,
        "paused": services.queues(name).paused(), "idle": waits and services.idle(),
        "lines": [diff.marked(*line) for line in found.lines],
        "curl": _curl(found, name, site.base.origin),
        "may_replay": bool(found.payload) and not waits,
        "commands": {
            "show": ("sitemapd", "event", "show", found.ident, "--site", name),
            "replay": ("sitemapd", "event", "replay", found.ident, "--site", name),
            "retry": ("sitemapd", "dead", "retry", found.letter, "--site", name),
            "discard": ("sitemapd", "dead", "discard", found.letter, "--site", name),
        },
    }  # fmt: skip


def _curl(found: Timeline, name: str, origin: str) -> str:
    try:
        return curl(Event.load(found.payload), name, origin) if found.payload else ""
    except SchemaError:
        return ""
