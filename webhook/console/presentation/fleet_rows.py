"""Table rows of the sites on the Overview: state, rate, lag, what waits, the last day."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import redis
from markupsafe import Markup

from shared.admin.site_signs import SiteSigns
from shared.store.counting.counters import HourCounts, recent_counts, together
from webhook.console.presentation import charts

DAY = 24


class FleetCount(NamedTuple):
    """One number of a site: what it counts, its grade if it is not 0, the page that shows more."""

    head: str
    number: int
    grade: str
    href: str


class FleetRow(NamedTuple):
    """One site: its page, its state (grade and word), events a minute, lag (ms, p50 and p95; None:
    nothing was published), counts, the last publish (W3C datetime; None: never), and its events of
    a day.
    """

    site: str
    href: str
    address: str
    grade: str
    state: str
    rate: float
    lag: tuple[float, float] | None
    counts: Sequence[FleetCount]
    last_publish: str | None
    spark: Markup


def rows(
    client: redis.Redis, shown: Sequence[SiteSigns], states: Mapping[str, tuple[str, str]],
    pages: Mapping[str, str],
) -> list[FleetRow]:  # fmt: skip
    """Return the rows of these sites; `states` by name; `pages`: addresses of pages, by title. One
    round trip. Raises StoreError.
    """
    counts = recent_counts(client, [each.site for each in shown], time.time())
    return [
        _row(signs, states[signs.site], recent, pages)
        for signs, recent in zip(shown, counts, strict=True)
    ]


def _row(
    signs: SiteSigns, state: tuple[str, str], recent: HourCounts, pages: Mapping[str, str]
) -> FleetRow:
    status, day = signs.status, list(signs.accepted.hours[-DAY:]) or [0] * DAY
    waits, here = together(recent.waits), f"?site={signs.site}"
    p50, p95 = waits.percentile(0.5), waits.percentile(0.95)
    refused = sum(signs.refused.counts.values())
    counts = (
        FleetCount("Waiting", status["waiting_events"], "busy", pages["Queues"] + here),
        FleetCount("Refused", refused, "warn", f"{pages['Events']}{here}&kind=refused"),
        FleetCount("Failed", status["dead_events"], "bad", pages["Failed"] + here),
        FleetCount("Held", len(status["held"]), "warn", pages["Overview"] + here),
    )
    said = f"{sum(day):,} events within a day, at most {max(day):,} in an hour"
    return FleetRow(
        signs.site, pages["Overview"] + here, status["base_url"].removeprefix("https://"), *state,
        recent.rate, None if p50 is None or p95 is None else (p50, p95), counts,
        status["last_publish"], charts.spark(day, said, titled=True),
    )  # fmt: skip
