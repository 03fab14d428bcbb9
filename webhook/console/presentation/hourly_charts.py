"""Charts of the last hour of a site: latency and number of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.store.counting.counters import MinuteCounts, together
from webhook.console.presentation import charts
from webhook.console.presentation.charts import Point

MINUTES = 60
SHARES = (0.5, 0.95, 0.99)
DRAWN = ("decided", "changed")
_DECIDED = ("changed", "unchanged")


def drawn(minutes: Sequence[MinuteCounts], ident: str) -> Mapping[str, Any]:
    """Return the charts and percentiles of `minutes`, of which there is at least one.

    `latency` and `events` are charts, empty without data; `waited` the percentiles of all the
    minutes together (ms), None without a publish. `ident` is unique on the page.
    """
    window = minutes[0].minute * 60, minutes[-1].minute * 60
    points = [
        Point(each.minute * 60, *found) for each in minutes if (found := _percentiles([each]))
    ]
    counted = [
        (
            each.minute * 60,
            sum(each.counts.get(name, 0) for name in _DECIDED),
            each.counts.get("changed", 0),
        )
        for each in minutes
    ]
    happened = any(count for _, *counts in counted for count in counts)
    return {
        "latency": charts.latency(
            points, "Accepted to visible, by minute", f"latency-{ident}", window
        ),
        "events": charts.counts(
            counted if happened else (), DRAWN, "Events by minute", f"events-{ident}", window
        ),
        "waited": _percentiles(minutes),
    }  # fmt: skip


def _percentiles(minutes: Sequence[MinuteCounts]) -> tuple[float, float, float] | None:
    waits = together([each.waits for each in minutes])
    if not waits.files:
        return None
    p50, p95, p99 = (waits.percentile(share) or 0.0 for share in SHARES)
    return p50, p95, p99
