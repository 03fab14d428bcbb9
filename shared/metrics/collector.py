"""Values of the declared metrics, read from Redis on each scrape."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import redis

from shared.config.cms_connections import STANDARD
from shared.config.site import Site
from shared.metrics.counter_samples import MetricSample, counted, waited
from shared.metrics.declarations import DECLARED
from shared.store.client import answering
from shared.store.counting.counter_buffer import OF_NO_SITE
from shared.store.counting.counters import Counters
from shared.store.keys import GROUP, Keys
from shared.store.operations.dead_letters import DeadLetters
from shared.store.operations.loop_health import LOOPS, LoopHealth, failing
from shared.store.operations.queues import PAUSABLE, Queues
from shared.store.operations.resync_requests import ResyncRequests
from shared.store.operations.worker_registry import HEARTBEAT, NAMES, own_version
from shared.store.pages.lookup import PageLookup
from shared.store.publishing.publish_state import PublishState
from shared.store.sections import Sections


class Collector:
    """Reader of the metrics of one site."""

    def __init__(
        self, client: redis.Redis, name: str, site: Site, codes: Sequence[str] = ()
    ) -> None:
        """Prepare the reader; `codes` are all codes with which requests may be refused."""
        self._name, self._news = name, site.routing.news
        # Also those of expired and unused secrets: one whose count stopped rising may be removed.
        keys = [secret.fingerprint for secret in site.secrets]
        keys += [*(["token"] if site.tokens else []), *{**site.sources, **dict.fromkeys(STANDARD)}]
        self._known = {"verified": keys, "refused": codes}
        self._stats, self._queues, self._dead = (
            Counters(client, name), Queues(client, name), DeadLetters(client, name),
        )  # fmt: skip
        self._health = LoopHealth(client)
        self._lookup = PageLookup(client, name, Sections(client, name, site.limits))
        self._publishing, self._resyncs = PublishState(client, name), ResyncRequests(client, name)

    def samples(self) -> Iterator[MetricSample]:
        """Every sample of the site; no work grows with its pages. Raises StoreError."""
        counts, waits = self._stats.totals()
        yield waited(self._name, waits)
        yield from counted(self._name, counts, self._known)
        for name, value in self._looked_up().items():
            yield MetricSample(DECLARED[f"sitemapd_{name}"], (self._name,), float(value))
        paused = self._queues.paused()
        for queue in PAUSABLE:
            metric = DECLARED["sitemapd_queue_paused"]
            yield MetricSample(metric, (self._name, queue), float(queue in paused))
        for loop, fails in failing(self._health.of_site(self._name)).items():
            yield MetricSample(DECLARED["sitemapd_loop_failing"], (self._name, loop), float(fails))

    def _looked_up(self) -> dict[str, float]:
        waiting = self._queues.waiting()
        files = self._publishing.files(self._publishing.sections())
        resyncs = self._resyncs.open().values()
        stopped, single = self._publishing.quarantine.read()

        def age(since_ms: int | None) -> float:
            return 0.0 if since_ms is None else max(0, waiting.now_ms - since_ms) / 1000

        return {
            "events_waiting": waiting.events,
            "events_in_flight": waiting.in_flight,
            "events_oldest_seconds": age(waiting.oldest_ms),
            "events_dead": len(self._dead),
            "files_waiting": waiting.files,
            "files_oldest_seconds": age(waiting.files_since_ms),
            "files_held": len(self._publishing.shrink.held()),
            "publishing_stopped": float(stopped is not None),
            "files_quarantined": len(single),
            "files": len(files),
            "files_size_bytes": sum(file.size for file in files.values()),
            "urls": self._lookup.count(),
            "urls_published": sum(
                file.urls for shard, file in files.items() if shard.section not in self._news
            ),
            "last_change_timestamp_seconds": max((f.lastmod for f in files.values()), default=0),
            "resyncs_open": len(resyncs),
            "resync_oldest_seconds": age(min(resyncs, default=None)),
        }


def of_process(*, up: bool) -> list[MetricSample]:
    """Samples that need no Redis; `up` is True if Redis answered."""
    return [
        MetricSample(DECLARED["sitemapd_up"], (), float(up)),
        MetricSample(DECLARED["sitemapd_build_info"], (own_version(),), 1.0),
    ]


def of_server(client: redis.Redis, sites: Sequence[str]) -> Iterator[MetricSample]:
    """Samples of no site, and the number of workers that serve `sites`. Raises StoreError."""
    with answering():
        pipe = client.pipeline(transaction=False)
        pipe.info("memory")
        pipe.info("persistence")
        pipe.hgetall(OF_NO_SITE)
        memory, persistence, stored = pipe.execute()
        began = time.time()
        seconds, micros = client.time()
        middle = (began + time.time()) / 2
        workers = _workers(client, sites)
    truncated = DECLARED["sitemapd_redis_truncated_loads_total"]
    counts = {name.decode(errors="replace"): int(count) for name, count in stored.items()}
    for name, value in {
        "workers": workers,
        "clock_offset_seconds": round(seconds + micros / 1e6 - middle, 3),
        "redis_memory_bytes": memory["used_memory"],
        "redis_memory_limit_bytes": memory["maxmemory"],
        "redis_append_ok": persistence.get("aof_last_write_status", "ok") == "ok",
        "redis_rewrite_ok": persistence.get("aof_last_bgrewrite_status", "ok") == "ok",
        "redis_truncated_loads_total": counts.get(truncated.field, 0),
        "messages_dropped_total": counts.get("messages_dropped", 0),
    }.items():
        yield MetricSample(DECLARED[f"sitemapd_{name}"], (), float(value))
    yield from counted("", counts, {})
    rounds: dict[str, float] = {}
    for report in LoopHealth(client).reports().values():
        for loop, at in report.succeeded.items():
            rounds[loop] = min(at, rounds.get(loop, at))
    metric = DECLARED["sitemapd_loop_last_round_timestamp_seconds"]
    for loop in LOOPS:
        if loop in rounds:
            yield MetricSample(metric, (loop,), rounds[loop])


def _workers(client: redis.Redis, sites: Sequence[str]) -> int:
    """The number of known workers with a heartbeat now."""
    pipe = client.pipeline(transaction=False)
    pipe.zrange(NAMES, 0, -1)
    for site in sites:
        pipe.xinfo_consumers(Keys(site).inbox, GROUP)
    told, *readers = pipe.execute(raise_on_error=False)  # an unread inbox has no group
    names = set(told) if isinstance(told, list) else set()
    names |= {row["name"] for rows in readers if isinstance(rows, list) for row in rows}
    return int(client.exists(*(HEARTBEAT.encode() + name for name in names))) if names else 0
