"""Every metric, declared once: its name, kind, unit, meaning and the bounds of its labels.

Names follow Prometheus (prometheus.io/docs/practices/naming): base units, counters end in
`_total`. Counters are kept in Redis, in the hash `stats` of their site, so any web process
answers the same and a restart loses nothing. `shared/metrics/collector.py` reads the values.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from shared.store.operations import loop_health, queues

Kind = Literal["counter", "gauge", "histogram"]

OTHER = "other"
"""Replacement for undeclared values of a label."""

ANSWER_BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
"""Upper bounds (ms) of the classes in which answer times are counted; the last class has none."""

ANSWERS = (
    "accepted", "duplicate", "ignored", "unauthorized", "limited", "refused", "unavailable",
    "failed",
)  # fmt: skip
"""Results of a delivery: stored; stored before; understood, and about no page; 401; 429; any other
4xx; 503; 500.
"""

CAUSES = ("full", "denied", OTHER)
"""Causes of failed writes: no space or quota; no permission, or read-only; anything else."""

VERDICTS = ("done", "pending", "too many", "failed", "refused", "forbidden", "held back")
"""Meanings of a search engine's answer."""


class Label(NamedTuple):
    """One label: its name, its meaning, and its values or their maximum number."""

    name: str
    meaning: str
    values: tuple[str, ...] = ()
    most: int = 0


class Metric(NamedTuple):
    """One metric. `field`: the field of `stats` that counts it, followed by the values of all
    labels but `site` (`refused:stale`); empty for a metric that is looked up.
    """

    name: str
    kind: Kind
    meaning: str
    labels: tuple[Label, ...] = ()
    unit: str = ""
    field: str = ""


SITE = Label("site", "a configured site", most=1_000)
_QUEUE = Label("queue", "what can be paused", tuple(queues.PAUSABLE))
_CODE = Label("code", "of the problem, as /openapi.json lists them", most=40)
_KEY = Label(
    "key",
    "a configured secret, by the first 8 hex digits of the SHA-256 of its decoded bytes; `token`;"
    " or the CMS that signed",
    most=64,
)
_ANSWER = Label("answer", "what became of the delivery", ANSWERS)
_CAUSE = Label("cause", "what the system refused", CAUSES)
_ENGINE = Label("engine", "a configured search engine", most=16)
_LOOP = Label("loop", "work that every worker does in the background", loop_health.LOOPS)
_VERDICT = Label("outcome", "what its answer means", VERDICTS)


def _counted(name: str, field: str, meaning: str, *labels: Label) -> Metric:
    return Metric(f"sitemapd_{name}_total", "counter", meaning, (SITE, *labels), "", field)


def _now(name: str, meaning: str, *labels: Label, unit: str = "") -> Metric:
    return Metric(f"sitemapd_{name}", "gauge", meaning, (SITE, *labels), unit)


def _server(name: str, meaning: str, unit: str = "", *labels: Label) -> Metric:
    return Metric(f"sitemapd_{name}", "gauge", meaning, labels, unit)


METRICS = (
    _server("up", "1 if Redis answered this scrape; without it nothing else is known"),
    _server("build_info", "always 1", "", Label("version", "of this web process", most=1)),
    _server("workers", "worker processes that told within 10 s that they live"),
    _server(
        "loop_last_round_timestamp_seconds",
        "when the worker that is longest behind last got through with it, whatever failed",
        "seconds", _LOOP,
    ),
    _server("clock_offset_seconds", "how far Redis's clock is ahead of this process's", "seconds"),
    _server("redis_memory_bytes", "memory in use by Redis", "bytes"),
    _server("redis_memory_limit_bytes", "its maxmemory; 0: none", "bytes"),
    _server("redis_append_ok", "0 while Redis cannot write its append-only file"),
    _server("redis_rewrite_ok", "0 if the last rewrite of that file failed"),
    Metric(
        "sitemapd_redis_truncated_loads_total", "counter",
        "starts of the embedded server at which the end of its append-only file was cut off",
        field="aof_truncated",
    ),
    Metric(
        "sitemapd_messages_dropped_total", "counter",
        "messages in the queues of Celery that somebody else wrote", field="messages_dropped",
    ),
    _counted("events_accepted", "accepted", "events stored durably"),
    _counted("events_changed", "changed", "events decided that changed what is listed"),
    _counted("events_unchanged", "unchanged", "events decided that changed nothing"),
    _counted("events_failed", "failed", "events given up after five tries"),
    _counted("events_adopted", "adopted", "events taken over from a worker that died"),
    _counted("wakeups_lost", "wakeups_lost", "times the sweep found events nobody worked on"),
    _counted("requests_refused", "refused", "requests refused, by reason", _CODE),
    _counted("requests_verified", "verified", "deliveries that were verified, by key", _KEY),
    Metric(
        "sitemapd_answer_seconds", "histogram", "time from a delivery to its answer",
        (SITE, _ANSWER), "seconds", "answered",
    ),
    Metric(
        "sitemapd_event_to_published_seconds", "histogram",
        "for each file published, how long the event waited that waited longest for it",
        (SITE,), "seconds", "waited",
    ),
    _counted("publishes", "publishes", "publish passes recorded"),
    _counted("files_written", "written", "files written, indexes and feeds included"),
    _counted("files_removed", "removed", "files removed, for they listed nothing any more"),
    _counted("publish_failures", "publish_failed", "passes that the system refused", _CAUSE),
    _counted("shards_held_back", "held_back", "times a shard could not be written as it is stored"),
    _counted("lease_takeovers", "lease_taken", "leases taken from a publisher that died"),
    _counted("lease_losses", "lease_lost", "passes that lost their lease and are done again"),
    _counted(
        "notifications", "notified", "what search engines were told, by outcome", _ENGINE, _VERDICT
    ),
    _now("events_waiting", "accepted events that are not settled"),
    _now("events_in_flight", "those of them that a worker was given"),
    _now("events_oldest_seconds", "how long the oldest of them waits; 0: none", unit="seconds"),
    _now("events_dead", "events given up and kept until somebody decides"),
    _now("files_waiting", "files with changes that are not published"),
    _now("files_oldest_seconds", "how long the longest of them waits; 0: none", unit="seconds"),
    _now("files_held", "files that the shrink guard holds as they were"),
    _now("publishing_stopped", "1 while nothing is published; sitemapd status says why"),
    _now("files_quarantined", "files that cannot be written, each set aside and tried again"),
    _now("files", "files of pages that are published, without indexes and feeds"),
    _now("files_size_bytes", "their bytes before compression", unit="bytes"),
    _now("urls", "pages listed, changes that are not published included"),
    _now("urls_published", "pages in the files"),
    _now("last_change_timestamp_seconds", "when a file last changed; 0: never", unit="seconds"),
    _now("queue_paused", "1 while somebody has paused or closed it", _QUEUE),
    _now("loop_failing", "1 while it fails or hangs in some worker at this site", _LOOP),
    _now("resyncs_open", "scopes to be compared with their source"),
    _now("resync_oldest_seconds", "how long the oldest of them waits; 0: none", unit="seconds"),
)  # fmt: skip

DECLARED = {metric.name: metric for metric in METRICS}
