"""Charts of a site over an hour, a day or a week: latency and number of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shared.store.counting.counters import Counters, SpanCounts, together
from webhook.console.presentation import charts
from webhook.console.presentation.charts import Window

SHARES = (0.5, 0.95, 0.99)
DRAWN = ("decided", "changed")
_DECIDED = ("changed", "unchanged")


class TimeRange(NamedTuple):
    """A range of time: its name, the seconds of one point, their number, and what a point is."""

    said: str
    step_s: int
    points: int
    by: str


RANGES = {
    "1h": TimeRange("1 hour", 60, 60, "minute"),
    "24h": TimeRange("24 hours", 900, 96, "15 minutes"),
    "7d": TimeRange("7 days", 3_600, 168, "hour"),
}


def drawn(counters: Counters, chosen: str, now_s: float) -> Mapping[str, Any]:
    """Return the charts and percentiles of one of RANGES until `now_s` (s since 1970).

    `latency` and `events` are charts, empty without data; `waited` the percentiles of the whole
    range (ms), None without a publish.
    """
    of = RANGES[chosen]
    spans = counters.spans(of.step_s, of.points, now_s)
    window = Window(spans[0].begin_s, spans[-1].begin_s, of.step_s)
    points = [(each.begin_s, *found) for each in spans if (found := _percentiles([each]))]
    counted = [
        (
            each.begin_s,
            sum(each.counts.get(name, 0) for name in _DECIDED),
            each.counts.get("changed", 0),
        )
        for each in spans
    ]
    happened = any(count for _, *counts in counted for count in counts)
    return {
        "latency": charts.latency(points, f"Accepted to visible, by {of.by}", "latency", window),
        "events": charts.counts(
            counted if happened else (), DRAWN, f"Events by {of.by}", "events", window
        ),
        "waited": _percentiles(spans),
        "within": of.said,
    }  # fmt: skip


def _percentiles(spans: Sequence[SpanCounts]) -> tuple[float, float, float] | None:
    waits = together([each.waits for each in spans])
    if not waits.files:
        return None
    p50, p95, p99 = (waits.percentile(share) or 0.0 for share in SHARES)
    return p50, p95, p99
