"""Page of events: decided, refused, waiting and failed ones, with filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from shared.admin.events import KINDS, EventFilter
from shared.admin.outcomes import is_id
from shared.errors import InvalidError, UrlError
from shared.sitemap import urls
from shared.store.operations.queues import EVENTS
from webhook.console.page_registry import PageRegistry, Shown, query_arg
from webhook.console.presentation import table_rows
from webhook.console.presentation.table_rows import TableRow
from webhook.console.views import fleet

ROWS = 50
LOOKED_AT = 5_000
"""Entries that one page reads to find those that match its filters."""
FAILED, WAITING = "failed", "waiting"
ASKED = ("url", "reason", "kind", "since")
SINCE = {
    "": "any time", "10m": "10 minutes", "1h": "an hour", "6h": "6 hours", "1d": "a day",
    "7d": "a week",
}  # fmt: skip
_STEP = 500


class EventSearch(NamedTuple):
    """Rows, and the id from which on there may be more."""

    rows: list[TableRow]
    older: str


def install(registry: PageRegistry) -> None:
    """Register the page Events."""
    services = registry.services

    def show() -> Shown:
        if registry.every_site() and query_arg("kind") not in {FAILED, WAITING}:
            asked = {key: query_arg(key) for key in ASKED}
            return fleet.events(registry, asked | {"url": _pattern(asked["url"])}, {"since": SINCE})
        name, before = registry.site(), query_arg("before")
        asked = filters(registry, name)
        queues = services.queues(name)
        waits, chosen = queues.waiting(), {key: value for key, value in asked.items() if value}
        values: dict[str, Any] = {
            "name": name, "asked": asked, "since": SINCE, "kinds": (*KINDS, FAILED, WAITING),
            "waits": waits, "failed": len(services.dead(name)), "looked_at": LOOKED_AT,
            "oldest": None if waits.oldest_ms is None else waits.oldest_ms / 1000,
            "paused": queues.paused().get(EVENTS), "command": _command(name, asked),
        }  # fmt: skip
        look: Callable[..., EventSearch]
        look = {FAILED: _failed, WAITING: _waiting}.get(asked["kind"], _happened)
        try:
            found = look(registry, name, asked, before)
        except InvalidError as error:
            return Shown("events.html", values | {"problem": str(error)}, 422)
        values |= {
            "rows": found.rows,
            "older": registry.address("Events", site=name, **chosen, before=found.older)
            if found.older else "",
            "newest": registry.address("Events", site=name, **chosen) if before else "",
            "replay": chosen | {"site": name} if asked["kind"] in {"", *KINDS} else None,
        }  # fmt: skip
        return Shown("events.html", values)

    registry.page("Events", "/events", show, per_site=True, live=True, all_sites=True)


def filters(registry: PageRegistry, name: str) -> dict[str, str]:
    """Return the filters in the address: a URL as it is stored, or a pattern for a part of one."""
    asked = {key: query_arg(key) for key in ASKED}
    url = asked["url"]
    if "://" in url and "*" not in url:
        with suppress(UrlError):  # another site's URL: it matches no event
            url = urls.canonical(url, registry.services.sites[name].base)
    return asked | {"url": _pattern(url)}


def _pattern(url: str) -> str:
    whole = not url or "*" in url or "://" in url or url.startswith("id ")
    return url if whole else f"*{url}*"


def _command(name: str, asked: Mapping[str, str]) -> tuple[str, ...]:
    if asked["kind"] in {FAILED, WAITING}:
        table = "dead" if asked["kind"] == FAILED else "queue"
        return ("sitemapd", table, "list", "--site", name)
    words = (f"--{key}={value}" for key, value in asked.items() if value)
    return ("sitemapd", "event", "list", *words, "--site", name)


def _happened(
    registry: PageRegistry, name: str, asked: Mapping[str, str], before: str
) -> EventSearch:
    found = registry.services.events(name).look(EventFilter.of(**asked), before, ROWS, LOOKED_AT)
    return EventSearch([table_rows.of_past(past) for past in found.found], found.older)


def _failed(
    registry: PageRegistry, name: str, asked: Mapping[str, str], before: str
) -> EventSearch:
    letters = registry.services.dead(name).latest(before=before if is_id(before) else "")
    seen = ((letter.id, table_rows.of_letter(letter)) for letter in islice(letters, LOOKED_AT))
    return _some(seen, EventFilter.of(**{**asked, "kind": ""}))


def _waiting(
    registry: PageRegistry, name: str, asked: Mapping[str, str], before: str
) -> EventSearch:
    queues = registry.services.queues(name)

    def oldest(after: str) -> Iterator[tuple[str, TableRow]]:
        for _ in range(LOOKED_AT // _STEP):
            some = queues.oldest(_STEP, after)
            for queued in some:
                yield queued.received.id, table_rows.of_queued(queued)
            if len(some) < _STEP:
                return
            after = some[-1].received.id

    seen = oldest(before if is_id(before) else "")
    return _some(seen, EventFilter.of(**{**asked, "kind": ""}))


def _some(seen: Iterable[tuple[str, TableRow]], wanted: EventFilter) -> EventSearch:
    """Return the first ROWS of the rows in `seen` that match `wanted`."""
    found, last, count = list[TableRow](), "", 0
    for ident, row in seen:
        if len(found) == ROWS:
            return EventSearch(found, last)
        last, count = ident, count + 1
        if wanted.fits(row.subject, row.why, int(row.at * 1000)):
            found.append(row)
    return EventSearch(found, last if count == LOOKED_AT else "")
