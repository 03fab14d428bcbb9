"""Replay of all events that match filters, after a page that shows their number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from werkzeug.datastructures import MultiDict

from shared.admin.events import EventFilter, StoredEvent
from shared.errors import Fault, InvalidError
from webhook.console.page_registry import ActionDone, PageRegistry, Shown
from webhook.console.presentation import form_fields, table_rows, template_filters
from webhook.console.views.events import ASKED, filters

MOST = 10_000
SAMPLE = 10


def install(registry: PageRegistry) -> None:
    """Register the confirmation page of a replay, and the action `event replay matching`."""
    services = registry.services

    def chosen(name: str, asked: Mapping[str, str]) -> list[StoredEvent]:
        return services.events(name).matching(EventFilter.of(**asked), MOST + 1)

    def show() -> Shown:
        name = registry.site()
        asked = filters(registry, name)
        back = registry.address("Events", site=name, **{k: v for k, v in asked.items() if v})
        values: dict[str, Any] = {
            "title": "Replay events", "name": name, "asked": asked, "back": back, "most": MOST,
            "found": (), "sample": (), "problem": "", "command": _command(name, asked),
        }  # fmt: skip
        try:
            found = chosen(name, asked)
        except InvalidError as error:
            return Shown("replay.html", values | {"problem": str(error)}, 422)
        sample = [table_rows.of_stored(stored) for stored in found[-SAMPLE:][::-1]]
        return Shown("replay.html", values | {"found": found, "sample": sample})

    def replay(form: MultiDict[str, str]) -> ActionDone:
        name = form_fields.site_of(services, form)
        asked = {key: form.get(key, "") for key in ASKED}
        found = chosen(name, asked)
        form_fields.expect(form, len(found))
        if len(found) > MOST:
            most = template_filters.number(MOST)
            detail = f"are more than {most}: narrow the filter, or use the command line"
            raise InvalidError(Fault("events", "count", detail))
        if not found:
            raise InvalidError(Fault("events", "count", "no event matches"))
        as_sent, quiet = bool(form.get("as_sent")), bool(form.get("quiet"))
        options = [word for word, on in (("--as-sent", as_sent), ("--quiet", quiet)) if on]
        said = [*_command(name, asked)[3:-2], *options]
        outcome = services.events(name).replay(found, said, newest=not as_sent, quiet=quiet)
        services.waker.wake(name)
        back = registry.address("Events", site=name)
        return ActionDone(outcome.said, name, outcome.subject, back=back)

    registry.part("Events", "replay_all", "/events/replay-all", show)
    registry.action("event replay matching", "/events/replay-all/now", replay)


def _command(name: str, asked: Mapping[str, str]) -> tuple[str, ...]:
    chosen = (f"--{key}={value}" for key, value in asked.items() if value)
    return ("sitemapd", "event", "replay", "--matching", *chosen, "--site", name)
