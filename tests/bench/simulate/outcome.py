"""What became of a simulation: lag, and how busy each resource was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, repeat

from tests.bench.simulate import counts
from tests.bench.simulate.costs import Costs
from tests.bench.simulate.model import Model
from tests.bench.simulate.points import quantile
from tests.bench.simulate.scenario import Scenario, deliveries

LATE_S, FULL = 1.0, 0.9
"""Limits: the p99 of lag beyond the publish interval, and the share of a resource."""
WEB, WORKERS, THREADS, REDIS, LOG, DISK, SITE, MEMORY, LAG = (
    "web processes", "processors of workers", "threads of workers", "processor of Redis",
    "bandwidth of Redis's log", "disk of the files", "publisher of the busiest site",
    "memory of Redis", "lag",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """Lag in seconds (`lag_p99_others`: published at other sites than the busiest), `shares` of
    resources, 1 for full ones; `*_s` are each second, sizes in bytes, memory that of all masters
    together; `left` are the events that waited at the end.
    """

    scenario: Scenario
    lag_p50: float
    lag_p99: float
    lag_p99_others: float
    shares: Mapping[str, float]
    passes_s: float
    files_s: float
    written_s: float
    log_s: float
    redis_network_s: float
    senders_s: float
    memory: Mapping[str, float]
    web_root: float
    left: int

    @property
    def breaks(self) -> list[str]:
        """What breaks, the fullest resource first; the lag alone if none is full."""
        late = not self.lag_p99 <= self.scenario.interval + LATE_S
        # A thread that waits for the next pass is busy, but in nobody's way until others are late.
        full = [
            name for name, share in self.shares.items()
            if share > FULL and (late or name != THREADS)
        ]  # fmt: skip
        if SITE in full and {WORKERS, DISK} & {*full}:
            full.remove(SITE)  # it only waits for those
        full.sort(key=lambda name: -self.shares[name])
        return full or [LAG] * late


def simulate(scenario: Scenario, costs: Costs) -> Outcome:
    """Simulate a scenario."""
    scenario = replace(scenario, seconds=max(scenario.seconds, 4 * scenario.interval))
    model = Model(scenario, costs)
    model.run(deliveries(scenario, model.zipf, model.chance.random))
    return _outcome(model)


def _outcome(model: Model) -> Outcome:
    scenario, costs, now = model.scenario, model.costs, model.env.now
    lasted, late = now - scenario.warm, scenario.interval + LATE_S
    waiting = [now - posted for posted in _invisible(model) if posted >= scenario.warm]
    # An event that is not visible yet is late for certain only once it has waited as long.
    lags = [lag for _, lag in model.lags]
    lags += [lag for lag in waiting if lag > late or not model.lags]
    idle = costs.idle_redis * scenario.sites * scenario.workers / scenario.masters
    memory = needed_memory(scenario, costs, waiting=len(waiting))
    shares = {
        WEB: model.web.share(),
        WORKERS: max(each.interpreter.share() for each in model.workers),
        THREADS: max(each.share() for each in model.threads),
        REDIS: max(each.core.share() for each in model.redis) + idle,
        LOG: max(each.written for each in model.redis) / lasted * costs.write_s,
        DISK: max(each.share() for each in model.disks),
        SITE: max(site.busy_s for site in model.sites) / lasted,
        # Twice: what changes while the log is rewritten is copied.
        MEMORY: 2 * sum(memory.values()) / scenario.masters / (scenario.redis_gb * 1e9),
    }
    per_s = model.deliveries / lasted
    return Outcome(
        scenario, quantile(lags, 0.5), quantile(lags, 0.99),
        quantile([lag for site, lag in model.lags if site], 0.99), shares,
        passes_s=model.passes / lasted, files_s=model.files / lasted,
        written_s=model.written / lasted,
        log_s=sum(each.written for each in model.redis) / lasted,
        redis_network_s=sum(each.sent for each in model.redis) / lasted,
        senders_s=per_s * counts.POST_BYTES + scenario.events * counts.DELIVERY_EVENT.network,
        memory=memory,
        web_root=scenario.urls * (costs.gzip_bytes if scenario.gzip else costs.xml_bytes),
        left=len(waiting),
    )  # fmt: skip


def _invisible(model: Model) -> Iterator[float]:
    """Yield the time of the POST of each event that is in no file yet."""
    for posted, events in model.unanswered.values():
        yield from repeat(posted, events)
    for site in model.sites:
        yield from (posted for posted, _ in site.inbox)
        yield from chain.from_iterable(times for _, times in site.dirty.values())


def needed_memory(scenario: Scenario, costs: Costs, waiting: int = 0) -> dict[str, float]:
    """Return the bytes of Redis by what they hold, after weeks of the scenario's mean load."""
    per_s = scenario.events * scenario.mean / scenario.per_delivery
    return {
        "URLs": scenario.urls * costs.memory_bytes,
        "event log and revisions": scenario.sites * 2 * scenario.history_mb * 1024**2,
        "ids of deliveries, for a week": per_s * counts.SEEN_S * counts.SEEN_BYTES,
        "inboxes": waiting * counts.EVENT_WAITING_BYTES,
    }
