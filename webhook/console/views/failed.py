"""Page of dead letters, grouped by error, and the actions that retry or discard them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from flask import request
from werkzeug.datastructures import MultiDict

from shared.admin.dead_letters import DeadLetterActions, DeadLetterFilter, DeadLetterGroup
from shared.admin.outcomes import is_id
from webhook.console.page_registry import ActionDone, PageRegistry, Shown, query_arg
from webhook.console.presentation import form_fields, table_rows
from webhook.console.views import fleet

GROUPED = 5_000
"""Newest dead letters that the page groups."""
ROWS, SAMPLE = 50, 10
MOST = 10_000
"""Dead letters that one action retries or discards at most."""
VERBS = {"retry": "Retry", "discard": "Discard"}


def install(registry: PageRegistry) -> None:
    """Register the page Failed with its actions, and the confirmation page for several dead
    letters.
    """
    services = registry.services

    def show() -> Shown:
        if registry.every_site() and "error" not in request.args:
            return fleet.failed(registry)
        name = registry.site()
        dead = services.dead(name)
        values: dict[str, Any] = {"name": name, "total": len(dead), "grouped": GROUPED}
        if (error := request.args.get("error")) is not None:
            return Shown("failed_group.html", values | _letters(registry, name, dead, error))
        groups = [_group(name, group) for group in dead.groups(GROUPED)]
        return Shown("failed.html", values | {"groups": groups, "commands": _commands(name)})

    def ask() -> Shown:
        name, choice = registry.site(), _choice(request.args)
        verb = query_arg("do") if query_arg("do") in VERBS else next(iter(VERBS))
        letters = services.dead(name).chosen(choice)
        values = {
            "name": name, "verb": verb, "label": VERBS[verb], "fields": _fields(name, choice),
            "events": len(letters), "most": MOST, "choice": choice,
            "sample": [table_rows.of_letter(letter) for letter in letters[: -SAMPLE - 1 : -1]],
            "command": _commands(name, choice)[verb],
        }  # fmt: skip
        return Shown("failed_ask.html", values)

    def retry(form: MultiDict[str, str]) -> ActionDone:
        name, choice = form_fields.site_of(services, form), _choice(form)
        dead = services.dead(name)
        form_fields.expect(form, len(dead.chosen(choice)))
        outcome = dead.retry(choice)
        services.waker.wake(name)
        back = registry.address("Failed", site=name)
        if choice.ids and outcome.ids:
            back = registry.address("Event", site=name, id=outcome.ids[0])
        return ActionDone(outcome.said, name, outcome.subject, back=back)

    def discard(form: MultiDict[str, str]) -> ActionDone:
        name, choice = form_fields.site_of(services, form), _choice(form)
        dead = services.dead(name)
        form_fields.expect(form, len(dead.chosen(choice)), exactly=True)
        outcome = dead.discard(choice)
        return ActionDone(
            outcome.said, name, outcome.subject, back=registry.address("Failed", site=name)
        )

    def save() -> tuple[str, Iterable[bytes]]:
        name = registry.site()
        letters = services.dead(name).chosen(_choice(request.args))
        return f"{name}-failed.ndjson", (letter.payload for letter in letters)

    registry.page("Failed", "/failed", show, per_site=True, live=True, all_sites=True)
    registry.part("Failed", "failed_ask", "/failed/ask", ask)
    registry.download("failed_save", "/failed/save", save)
    registry.action("dead retry", "/failed/retry", retry)
    registry.action("dead discard", "/failed/discard", discard)


def _group(name: str, group: DeadLetterGroup) -> dict[str, Any]:
    choice = DeadLetterFilter(error=group.error)
    return {
        "group": group, "first": group.first_ms / 1000, "last": group.last_ms / 1000,
        "examples": list(zip(group.ids, group.examples, strict=True)),
        "commands": _commands(name, choice),
    }  # fmt: skip


def _letters(
    registry: PageRegistry, name: str, dead: DeadLetterActions, error: str
) -> dict[str, Any]:
    """Return the values of the page of one group."""
    before = query_arg("before")
    found = dead.latest(error, before if is_id(before) else "")
    letters = list(islice(found, ROWS + 1))
    here = {"site": name, "error": error}
    older = letters[ROWS - 1].id if len(letters) > ROWS else ""
    return {
        "error": error, "commands": _commands(name, DeadLetterFilter(error=error)),
        "letters": [(letter, table_rows.of_letter(letter)) for letter in letters[:ROWS]],
        "older": registry.address("Failed", **here, before=older) if older else "",
        "newest": registry.address("Failed", **here) if before else "",
    }  # fmt: skip


def _choice(given: Mapping[str, str]) -> DeadLetterFilter:
    """Return the filter that an address or a form states: one id, those with an error, or all."""
    if ident := given.get("id"):
        return DeadLetterFilter((ident,))
    if (error := given.get("error")) is not None:
        # Forms send every line feed as CRLF (HTML, constructing the entry list).
        return DeadLetterFilter(error=error.replace("\r\n", "\n"), most=MOST)
    return DeadLetterFilter(everything=given.get("all") == "yes", most=MOST)


def _fields(name: str, choice: DeadLetterFilter) -> dict[str, str]:
    """Return the form fields that state the same filter."""
    if choice.ids:
        return {"site": name, "id": choice.ids[0]}
    return {"site": name} | ({"all": "yes"} if choice.error is None else {"error": choice.error})


def _commands(name: str, choice: DeadLetterFilter | None = None) -> dict[str, tuple[str, ...]]:
    words = (choice or DeadLetterFilter(everything=True)).words()
    return {verb: ("sitemapd", "dead", verb, *words, "--site", name) for verb in VERBS}
