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


READ_BACK = ("known", "unknown", "late", "unasked")
"""States of pages at an engine that is read back: known; unknown when asked last; unknown hours
after the publish; never asked about.
"""


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
_QUEUE = Label("queue", "queue that can be paused", tuple(queues.PAUSABLE))
_CODE = Label("code", "code of the problem; /openapi.json lists them", most=40)
_KEY = Label(
    "key",
    "a configured secret, by the first 8 hex digits of the SHA-256 of its decoded bytes; `token`;"
    " or the CMS that signed",
    most=64,
)
_ANSWER = Label("answer", "result of the delivery", ANSWERS)
_CAUSE = Label("cause", "cause of the failed write", CAUSES)
_ENGINE = Label("engine", "a configured search engine", most=16)
_LOOP = Label("loop", "background loop of a worker", loop_health.LOOPS)
_TARGET = Label("target", "a target of a site with several", most=16)
_READER = Label("engine", "an engine that is read back", ("google", "bing", "yandex"))
_KNOWN = Label("state", "of the page at the engine", READ_BACK)
_VERDICT = Label("outcome", "meaning of the answer of the engine", VERDICTS)


def _counted(name: str, field: str, meaning: str, *labels: Label) -> Metric:
    return Metric(f"sitemapd_{name}_total", "counter", meaning, (SITE, *labels), "", field)


def _now(name: str, meaning: str, *labels: Label, unit: str = "") -> Metric:
    return Metric(f"sitemapd_{name}", "gauge", meaning, (SITE, *labels), unit)


def _server(name: str, meaning: str, unit: str = "", *labels: Label) -> Metric:
    return Metric(f"sitemapd_{name}", "gauge", meaning, labels, unit)


METRICS = (
    _server("up", "1 if Redis answered this scrape, else 0 and no other values"),
    _server("build_info", "always 1", "", Label("version", "version of this web process", most=1)),
    _server("workers", "worker processes with a heartbeat within the last 10 s"),
    _server("configuration_refused", "processes that refuse the present configuration file"),
    _server(
        "loop_last_round_timestamp_seconds",
        "end of the last round, failed or not, in the worker for which it is longest ago",
        "seconds", _LOOP,
    ),
    _server("clock_offset_seconds", "clock of Redis minus clock of this process", "seconds"),
    _server("redis_memory_bytes", "memory used by Redis", "bytes"),
    _server("redis_memory_limit_bytes", "maxmemory of Redis; 0: no limit", "bytes"),
    _server("redis_append_ok", "1 if the last write of the append-only file succeeded, else 0"),
    _server("redis_rewrite_ok", "1 if the last rewrite of the append-only file succeeded, else 0"),
    Metric(
        "sitemapd_redis_truncated_loads_total", "counter",
        "starts of the embedded server that truncated an incomplete append-only file",
        field="aof_truncated",
    ),
    Metric(
        "sitemapd_messages_dropped_total", "counter",
        "messages dropped because no sitemapd process wrote them", field="messages_dropped",
    ),
    _counted("events_accepted", "accepted", "events stored durably"),
    _counted("events_changed", "changed", "decided events that changed a listed page"),
    _counted("events_unchanged", "unchanged", "decided events that changed nothing"),
    _counted("events_failed", "failed", "events moved to the dead letters after five tries"),
    _counted("events_adopted", "adopted", "events claimed from a dead worker"),
    _counted("wakeups_lost", "wakeups_lost", "times that the sweep found events without a wake-up"),
    _counted("requests_refused", "refused", "refused requests, by code", _CODE),
    _counted("requests_verified", "verified", "verified deliveries, by key", _KEY),
    Metric(
        "sitemapd_answer_seconds", "histogram", "time from a delivery to its answer",
        (SITE, _ANSWER), "seconds", "answered",
    ),
    Metric(
        "sitemapd_event_to_published_seconds", "histogram",
        "for each published file, the age of its oldest event",
        (SITE,), "seconds", "waited",
    ),
    _counted("publishes", "publishes", "completed publish passes"),
    _counted("files_written", "written", "files written, indexes and feeds included"),
    _counted("files_removed", "removed", "files removed because they became empty"),
    _counted("publish_failures", "publish_failed",
        "publish passes that failed to write, by cause", _CAUSE),
    _counted("shards_held_back", "held_back", "times that a shard was quarantined"),
    _counted("lease_takeovers", "lease_taken", "leases taken over from a dead publisher"),
    _counted("lease_losses", "lease_lost",
        "publish passes that lost their lease and were repeated"),
    _counted(
        "notifications", "notified",
            "notifications of search engines, by outcome", _ENGINE, _VERDICT
    ),
    _now("events_waiting", "accepted events that are not decided yet"),
    _now("events_in_flight", "waiting events that a worker has read"),
    _now("events_oldest_seconds", "age of the oldest waiting event; 0: none", unit="seconds"),
    _now("events_dead", "dead letters: failed events, kept until retried or discarded"),
    _now("files_waiting", "files with unpublished changes"),
    _now("files_oldest_seconds", "age of the oldest unpublished change; 0: none", unit="seconds"),
    _now("files_held", "files held by the shrink guard"),
    _now("publishing_stopped", "1 while publishing of the site is stopped; see sitemapd status"),
    _now("files_quarantined", "quarantined files: each is retried"),
    _now("files", "published files of pages, without indexes and feeds"),
    _now("files_size_bytes", "size of these files before compression", unit="bytes"),
    _now("urls", "listed pages, including unpublished changes"),
    _now("urls_published", "pages in the published files"),
    _now("last_change_timestamp_seconds",
        "time of the last change of a file; 0: never", unit="seconds"),
    _now("queue_paused", "1 while the queue is paused or the intake is closed", _QUEUE),
    _now("loop_failing", "1 while the loop fails or hangs for this site in some worker", _LOOP),
    _now("target_behind_seconds",
        "age of the oldest publish that the target lacks; 0: none", _TARGET, unit="seconds"),
    _now("target_failing", "1 while the target cannot be written", _TARGET),
    _now("readback_pages", "followed pages, by what the engine says of them; late ones are unknown,"
        " too", _READER, _KNOWN),
    _now("resyncs_open", "requested resyncs that are not done yet"),
    _now("resync_oldest_seconds", "age of the oldest requested resync; 0: none", unit="seconds"),
)  # fmt: skip

DECLARED = {metric.name: metric for metric in METRICS}
