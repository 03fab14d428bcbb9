"""Page of what engines know: their sitemaps, delays by section, pages unknown for long."""

from __future__ import annotations

from typing import Any

from shared.admin.read_back import TITLES, FollowedPage, ReadBack, by_time, plain
from shared.clock import now_ms
from webhook.console.page_registry import PageRegistry, Shown

LATE = 25
"""Pages that are unknown for long, of each engine."""

NEWEST = 25
SITEMAPS = 50


def install(registry: PageRegistry) -> None:
    """Register the page Index status."""
    services = registry.services

    def show() -> Shown:
        name, now = registry.site(), now_ms()
        config = services.sites[name].readback
        known = ReadBack(services.client, name, services.sites[name])
        states = known.states(now)
        sitemaps = [*known.sitemaps()]
        values: dict[str, Any] = {
            "name": name, "titles": TITLES, "hours": config.unknown_hours,
            "engines": [state | {"grade": _grade(state)} for state in states],
            "sitemaps": sitemaps[:SITEMAPS], "more_sitemaps": max(0, len(sitemaps) - SITEMAPS),
            "sections": known.summary(),
            "late": [(each["engine"], each["unknown_late"],
                      [_row(page) for page in known.late(each["engine"], now, LATE)])
                     for each in states if each["unknown_late"]],
            "newest": [_row(page) for page in known.newest(NEWEST)],
        }  # fmt: skip
        return Shown("index_status.html", values)

    registry.page("Index status", "/index-status", show, per_site=True, live=True)


def _grade(state: dict[str, Any]) -> tuple[str, str]:
    """Return a grade and a few words for the state of an engine."""
    if state["failing"]:
        return "bad", "fails"
    if state["resting_until"]:
        return "warn", "asked us to wait"
    if state["requests_today"] >= state["daily"]:
        return "warn", "today's budget is spent"
    return ("good", "read") if state["last_read"] else ("busy", "not read yet")


def _row(page: FollowedPage) -> dict[str, Any]:
    """Return a page as JSON values, its first fetches in order of time."""
    return plain(page) | {"fetched": [(name, at / 1000) for name, at in by_time(page.fetched)]}
