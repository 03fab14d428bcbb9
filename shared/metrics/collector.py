"""Values of the declared metrics, read from Redis on each scrape."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import redis

from shared.clock import now_ms
from shared.config.sites.cms_connections import STANDARD
from shared.config.sites.site import Site
from shared.metrics import exposition
from shared.metrics.counter_samples import MetricSample, counted, waited
from shared.metrics.declarations import DECLARED, METRICS, READ_BACK
from shared.store.client import answering
from shared.store.counting.counter_buffer import OF_NO_SITE
from shared.store.operations.config_reports import ConfigReports
from shared.store.operations.loop_health import (
    LOOPS,
    LoopHealth,
    ReportedLoops,
    failing,
    troubles,
)
from shared.store.operations.queues import PAUSABLE
from shared.store.operations.site_snapshot import SiteSnapshot, SnapshotReader
from shared.store.operations.worker_registry import WorkerRegistry, own_version
from shared.store.readback.counts_reading import counts_reading
from shared.store.readback.page_chains import PageCounts
from shared.store.round_trips import Reading, gathered, read
from shared.store.targets.target_state import TargetRecord

_NONE: Mapping[str, PageCounts] = {}


class Collector:
    """Reader of the metrics of these sites, by name."""

    def __init__(
        self, client: redis.Redis, sites: Mapping[str, Site], codes: Sequence[str] = ()
    ) -> None:
        """Prepare the reader; `codes` are all codes with which requests may be refused."""
        self._client = client
        self._snapshots = SnapshotReader(dict.fromkeys(sites, ()), "stats")
        self._reading = {n: site.readback for n, site in sites.items() if site.readback.engines}
        self._of = {name: _SiteMetrics(name, site, codes) for name, site in sites.items()}
        self._texts: dict[str, tuple[SiteSnapshot, list[ReportedLoops], dict[str, str]]] = {}

    def samples(self, names: Iterable[str]) -> Iterator[MetricSample]:
        """Every sample of the sites `names`, read in as many round trips as those of one; no work
        grows with their pages. Raises StoreError.
        """
        for name, snapshot, told, counts in self._read(list(names)):
            yield from self._of[name].samples(snapshot, told)
            yield from _read_back(name, counts)

    def texts(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Return the lines of `samples` by metric. Those of a site at which nothing changes are
        kept. Raises StoreError.
        """
        found: dict[str, list[str]] = {metric.name: [] for metric in METRICS}
        for name, snapshot, told, counts in self._read(list(names)):
            known = self._texts.get(name)
            if known is None or known[0] is not snapshot or known[1] != told:
                lines = lines_by_metric(self._of[name].samples(snapshot, told))
                known = self._texts[name] = snapshot, told, lines
            for metric, text in known[2].items():
                found[metric].append(text)
            if counts:
                for metric, text in lines_by_metric(_read_back(name, counts)).items():
                    found[metric].append(text)
        return found

    def _read(
        self, names: Sequence[str]
    ) -> Iterator[tuple[str, SiteSnapshot, list[ReportedLoops], Mapping[str, PageCounts]]]:
        parts: list[Reading[Any]] = [
            LoopHealth(self._client).reports_reading(), self._snapshots.reading(names, time.time())
        ]  # fmt: skip
        if reading := {name: self._reading[name] for name in names if name in self._reading}:
            parts.append(counts_reading(reading, now_ms()))
        reports, snapshots, *counts = read(self._client, gathered(parts))
        told = troubles(reports)
        for name, snapshot in zip(names, snapshots, strict=True):
            mine = [each for each in told if each.trouble.site in {"", name}]
            yield name, snapshot, mine, counts[0].get(name, _NONE) if counts else _NONE


class _SiteMetrics:
    """Samples of one site."""

    def __init__(self, name: str, site: Site, codes: Sequence[str]) -> None:
        self._name, self._news = name, site.routing.news
        self._targets = [each.ident for each in site.several_targets]
        # Also those of expired and unused secrets: one whose count stopped rising may be removed.
        keys = [secret.fingerprint for secret in site.secrets]
        keys += [*(["token"] if site.tokens else []), *{**site.sources, **dict.fromkeys(STANDARD)}]
        self._known = {"verified": keys, "refused": codes}

    def samples(
        self, snapshot: SiteSnapshot, told: Iterable[ReportedLoops]
    ) -> Iterator[MetricSample]:
        """Every sample of `snapshot`, and of `told`, the troubles of loops at this site."""
        counts, waits = snapshot.totals
        yield waited(self._name, waits)
        yield from counted(self._name, counts, self._known)
        for name, value in self._looked_up(snapshot).items():
            yield MetricSample(DECLARED[f"sitemapd_{name}"], (self._name,), float(value))
        for target in self._targets:
            record = snapshot.targets.get(target, TargetRecord())
            for what, number in {
                "behind_seconds": _age(snapshot, record.behind_ms or None),
                "failing": float(record.failing_ms > 0),
            }.items():
                metric = DECLARED[f"sitemapd_target_{what}"]
                yield MetricSample(metric, (self._name, target), number)
        for queue in PAUSABLE:
            metric = DECLARED["sitemapd_queue_paused"]
            yield MetricSample(metric, (self._name, queue), float(queue in snapshot.paused))
        for loop, fails in failing(told).items():
            yield MetricSample(DECLARED["sitemapd_loop_failing"], (self._name, loop), float(fails))

    def _looked_up(self, snapshot: SiteSnapshot) -> dict[str, float]:
        waiting, files, resyncs = snapshot.depth, snapshot.files, snapshot.resyncs.values()
        stopped, single = snapshot.quarantined
        return {
            "events_waiting": waiting.events,
            "events_in_flight": waiting.in_flight,
            "events_oldest_seconds": _age(snapshot, waiting.oldest_ms),
            "events_dead": snapshot.dead,
            "files_waiting": waiting.files,
            "files_oldest_seconds": _age(snapshot, waiting.files_since_ms),
            "files_held": len(snapshot.held),
            "publishing_stopped": float(stopped is not None),
            "files_quarantined": len(single),
            "files": len(files),
            "files_size_bytes": sum(file.size for file in files.values()),
            "urls": snapshot.urls,
            "urls_published": sum(
                file.urls for shard, file in files.items() if shard.section not in self._news
            ),
            "last_change_timestamp_seconds": max((f.lastmod for f in files.values()), default=0),
            "resyncs_open": len(resyncs),
            "resync_oldest_seconds": _age(snapshot, min(resyncs, default=None)),
        }


def _read_back(name: str, counts: Mapping[str, PageCounts]) -> Iterator[MetricSample]:
    """Yield the samples of the engines that a site reads back from."""
    metric = DECLARED["sitemapd_readback_pages"]
    for engine, count in counts.items():
        for state in READ_BACK:
            value = float(getattr(count, state))
            yield MetricSample(metric, (name, engine, state), value)


def _age(snapshot: SiteSnapshot, since_ms: int | None) -> float:
    return 0.0 if since_ms is None else max(0, snapshot.depth.now_ms - since_ms) / 1000


def lines_by_metric(samples: Iterable[MetricSample]) -> dict[str, str]:
    """Return the lines of these samples, by metric."""
    found: dict[str, str] = {}
    for sample in samples:
        name = sample.metric.name
        found[name] = found.get(name, "") + exposition.lines(sample)
    return found


def of_process(*, up: bool) -> list[MetricSample]:
    """Samples that need no Redis; `up` is True if Redis answered."""
    return [
        MetricSample(DECLARED["sitemapd_up"], (), float(up)),
        MetricSample(DECLARED["sitemapd_build_info"], (own_version(),), 1.0),
    ]


def of_server(client: redis.Redis) -> Iterator[MetricSample]:
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
    reports = ConfigReports(client).read()
    truncated = DECLARED["sitemapd_redis_truncated_loads_total"]
    counts = {name.decode(errors="replace"): int(count) for name, count in stored.items()}
    for name, value in {
        "workers": sum(each.alive for each in WorkerRegistry(client).list()),
        "configuration_refused": sum(1 for each in reports.values() if each.refused),
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
