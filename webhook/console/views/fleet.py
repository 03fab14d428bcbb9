"""Pages Events, Queues and Failed of all sites together."""

from __future__ import annotations

from typing import Any

from shared.admin import fleet
from shared.admin.events import KINDS, EventFilter
from shared.admin.outcomes import is_id
from shared.errors import InvalidError
from shared.store.operations.site_snapshot import SnapshotReader
from webhook.console.page_registry import PageRegistry, Shown, query_arg
from webhook.console.presentation import table_rows

ROWS = 50


def events(registry: PageRegistry, asked: dict[str, str], values: dict[str, Any]) -> Shown:
    """Return the newest events of all sites that the filter `asked` selects."""
    sites, before = list(registry.services.sites), query_arg("before")
    values |= {"kinds": KINDS, "asked": asked}
    try:
        wanted = EventFilter.of(**asked)
    except InvalidError as error:
        return Shown("events_all.html", values | {"problem": str(error)}, 422)
    found = fleet.latest_events(
        registry.services.client, sites, ROWS, before if is_id(before) else ""
    )
    chosen = {key: value for key, value in asked.items() if value}
    return Shown(
        "events_all.html",
        values | {
            "rows": [
                (site, table_rows.of_past(past)) for site, past in found.found
                if wanted.takes(past)
            ],
            "looked": len(found.found), **_pages(registry, "Events", found.older, chosen),
        },
    )  # fmt: skip


def queues(registry: PageRegistry, snapshots: SnapshotReader) -> Shown:
    """Return what waits at all sites: what is paused or waits longest first."""
    found = fleet.queues(registry.services.client, snapshots, list(registry.services.sites))
    busy = [each for each in found if each.paused or each.depth.events or each.depth.files]
    return Shown("queues_all.html", {"rows": busy[:ROWS], "busy": len(busy), "sites": len(found)})


def failed(registry: PageRegistry) -> Shown:
    """Return the newest dead letters of all sites, and how many each has."""
    sites, before = list(registry.services.sites), query_arg("before")
    client = registry.services.client
    found = fleet.latest_letters(client, sites, ROWS, before if is_id(before) else "")
    counts = fleet.dead_counts(client, sites)
    values = {
        "rows": [(site, table_rows.of_letter(letter)) for site, letter in found.found],
        "counts": list(counts.items())[:ROWS], "more": max(0, len(counts) - ROWS),
        "total": sum(counts.values()), **_pages(registry, "Failed", found.older, {}),
    }  # fmt: skip
    return Shown("failed_all.html", values)


def _pages(
    registry: PageRegistry, title: str, older: str, chosen: dict[str, str]
) -> dict[str, str]:
    return {
        "older": registry.address(title, **chosen, before=older) if older else "",
        "newest": registry.address(title, **chosen) if query_arg("before") else "",
    }
