"""The road of events through the machines of a scenario.

Modelled as the code does it: a web process takes a delivery and answers when Redis has flushed it;
the first event wakes a worker; one thread at a time works for a site, reads up to 500 events,
decides, applies, and publishes all changed files at most once per publish interval, up to 256 in a
pass; the site sleeps when nothing is left. Left out: what a publisher keeps between its passes, the
sweep's own work for a site, rewrites of the log, checks, notifications, reconciles, crawlers that
read.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import simpy

from tests.bench.simulate import counts
from tests.bench.simulate.costs import Costs
from tests.bench.simulate.scenario import Delivery, Scenario, Zipf
from tests.bench.simulate.servers import Chance, Pool, Redis, Steps, Worker, serve

BATCH, LINGER_S, PASS_SHARDS, AHEAD_S, CHUNK = 500, 0.02, 256, 2.0, 16


@dataclass
class _Site:
    """State of one site: events as (time of the POST, block), and what waits for a pass."""

    number: int
    urls: int
    inbox: deque[tuple[float, int]] = field(default_factory=deque)
    dirty: dict[int, tuple[set[int], list[float]]] = field(default_factory=dict)
    awake: bool = False
    publish_at: float = -math.inf
    dated: float = -math.inf
    busy_s: float = 0.0


class Model:
    """One simulation. `lags` are (site, seconds from POST to visible) after the warm-up;
    `unanswered` are the deliveries under way, (time of the POST, events).
    """

    def __init__(self, scenario: Scenario, costs: Costs) -> None:
        self.env = env = simpy.Environment()
        self.scenario, self.costs, self.chance = scenario, costs, Chance(scenario.seed)
        self.zipf = Zipf(max(scenario.sites, int(scenario.urls) // counts.BLOCK_URLS, 1))
        self.cores = Pool(env, "cores", scenario.cores) if scenario.cores else None
        self.web = Pool(env, "web processes", scenario.web)
        self.redis = [self._redis() for _ in range(scenario.masters)]
        idle = costs.idle_worker * scenario.sites / scenario.hosts
        self.workers = [
            Worker(env, n, n % scenario.hosts, idle) for n in range(scenario.workers)
        ]  # fmt: skip
        per_host = scenario.workers * scenario.threads // scenario.hosts
        self.threads = [Pool(env, "threads", max(per_host, 1)) for _ in range(scenario.hosts)]
        self.disks = [Pool(env, "disk of files", 1) for _ in range(scenario.hosts)]
        self.sites = [
            _Site(n, max(1, round(scenario.urls * self._share(n)))) for n in range(scenario.sites)
        ]
        self.lags: list[tuple[int, float]] = []
        self.posted = self.accepted = self.visible = self.passes = self.files = self.deliveries = 0
        self.written, self.visible_at = 0.0, 0.0
        self.unanswered: dict[int, tuple[float, int]] = {}

    def _redis(self) -> Redis:
        costs, scenario = self.costs, self.scenario
        return Redis(
            self.env, self.chance, costs.command_s, costs.flush_s, costs.write_s,
            spread=costs.spread, flush_spread=costs.flush_spread, rtt_s=scenario.rtt_s,
            cores=self.cores,
        )  # fmt: skip

    def _share(self, site: int) -> float:
        if self.scenario.uniform:
            return 1 / self.scenario.sites
        return self.zipf.share(site, self.scenario.sites)

    def run(self, deliveries: Iterable[Delivery], *, until_rest: bool = False) -> None:
        """Simulate; with `until_rest` until nothing is left, else until the scenario's end."""
        env, scenario = self.env, self.scenario
        env.process(self._senders(deliveries))
        env.process(self._warmed_up())
        env.run(None if until_rest else scenario.seconds)

    def _warmed_up(self) -> Steps:
        yield self.env.timeout(self.scenario.warm)
        pools = [self.web, *self.threads, *self.disks, *(w.interpreter for w in self.workers)]
        for each in [*pools, *self.redis]:
            each.begin()
        for site in self.sites:
            site.busy_s = 0.0
        self.written, self.passes, self.files, self.deliveries = 0.0, 0, 0, 0

    def _senders(self, deliveries: Iterable[Delivery]) -> Steps:
        for each in deliveries:
            if each.at > self.env.now:
                yield self.env.timeout(each.at - self.env.now)
            self.env.process(self._deliver(self.sites[each.site], each.events))

    def _deliver(self, site: _Site, events: int) -> Steps:
        env, costs, began = self.env, self.costs, self.env.now
        number = self.posted
        self.unanswered[number] = began, events
        self.posted += events
        self.deliveries += 1
        seconds = costs.deliver_s + (events - 1) * costs.accept_event_s
        seconds = self.chance.about(seconds, costs.spread)
        with self.web.slot() as mine:
            yield mine
            yield from self.web.busy(serve(env, self.cores, seconds))
        redis = self.redis[site.number % len(self.redis)]
        yield redis.call(counts.DELIVERY.plus(counts.DELIVERY_EVENT, events))
        del self.unanswered[number]
        self.fill(site, events, began)
        if not site.awake:
            site.awake = True
            env.process(self.wake(site))

    def fill(self, site: _Site, events: int, began: float) -> None:
        """Put accepted events into the inbox, each for a page of some block."""
        self.accepted += events
        scenario, chance = self.scenario, self.chance.random
        blocks = max(1, math.ceil(site.urls / counts.BLOCK_URLS))
        for _ in range(events):
            if scenario.uniform:
                block = chance.randrange(blocks)
            else:
                block = 0 if chance.random() < scenario.new else self.zipf.draw(chance, blocks)
            site.inbox.append((began, block))

    def wake(self, site: _Site) -> Steps:
        """Have a thread of the site's host work for it: a message of Celery."""
        host = site.number % self.scenario.hosts
        yield self.redis[0].call(counts.WAKE)
        threads = self.threads[host]
        with threads.slot() as mine:
            yield mine
            yield from threads.busy(self._work(site, host))

    def _work(self, site: _Site, host: int) -> Steps:
        of_host = [worker for worker in self.workers if worker.host == host]
        worker = min(of_host, key=lambda each: each.sites)
        worker.sites += 1
        yield from worker.compute(self.env, self.cores, self.costs.wake_s)
        yield from self._drain(site, worker)
        worker.sites -= 1

    def _drain(self, site: _Site, worker: Worker) -> Steps:
        """As InboxConsumer does."""
        env, costs = self.env, self.costs
        redis, applying = self.redis[site.number % len(self.redis)], None
        while True:
            began = env.now
            taken = min(BATCH, len(site.inbox))
            yield redis.call(counts.READ.plus(counts.READ_EVENT, taken) if taken else _EMPTY)
            if taken:
                seconds = self.chance.about(taken * costs.decide_s, costs.spread)
                yield from worker.compute(env, self.cores, seconds)
                if applying is not None:
                    yield applying
                # The next batch is decided while Redis applies this one.
                applying = redis.call(counts.APPLY.plus(counts.APPLY_EVENT, taken))
                self._take(site, taken)
            due = site.publish_at - env.now
            if applying is not None and (due <= 0 or taken < BATCH):
                yield applying
                applying = None
            if due <= 0 and site.dirty:
                yield from self._publish(site, worker, redis)
            site.busy_s += env.now - began
            if not site.inbox and not site.dirty:
                if applying is not None:
                    yield applying
                yield redis.call(counts.REST)
                if not site.inbox:
                    site.awake = False
                    return
            elif due > 0 and taken < BATCH:
                yield env.timeout(min(due, LINGER_S))

    def _take(self, site: _Site, count: int) -> None:
        blocks = max(1, self.scenario.shard_urls // counts.BLOCK_URLS)
        for _ in range(count):
            posted, block = site.inbox.popleft()
            changed, times = site.dirty.setdefault(block // blocks, (set(), []))
            changed.add(block)
            times.append(posted)

    def _publish(self, site: _Site, worker: Worker, redis: Redis) -> Steps:
        """One publish pass, in chunks of files, between which other threads compute."""
        env, costs, scenario = self.env, self.costs, self.scenario
        shards = [*site.dirty][:PASS_SHARDS]
        patches = [site.dirty.pop(shard) for shard in shards]
        full = bool(site.dirty)
        shard_urls = min(site.urls, scenario.shard_urls)
        lines = math.ceil(site.urls / scenario.shard_urls)
        size = shard_urls * (costs.gzip_bytes if scenario.gzip else costs.xml_bytes)
        read = len(shards) * shard_urls * costs.block_bytes
        begin = counts.PASS.plus(counts.PASS_SHARD, len(shards))
        yield redis.call(counts.Count(begin.commands / 2, 200, read))
        yield from worker.compute(env, self.cores, self.chance.about(costs.turn_s, costs.spread))
        for at in range(0, len(shards), CHUNK):
            number = len(shards[at : at + CHUNK])
            seconds = number * (costs.shard_s + shard_urls * costs.xml_bytes * costs.byte_s)
            seconds = self.chance.about(seconds, costs.spread)
            yield from worker.compute(env, self.cores, seconds)
            yield from self._write(worker.host, number * size, number)
        yield from self._write(worker.host, lines * 110, 2)  # the index, the directory
        yield redis.call(counts.Count(1, 0, 100))  # still the holder of the lease
        self._seen(site, [posted for _, times in patches for posted in times])
        self.passes += 1
        self.files += len(shards) + 1
        log = sum(len(changed) for changed, _ in patches) * counts.BLOCK_URLS * costs.block_bytes
        yield redis.call(counts.Count(begin.commands / 2, begin.log + log, begin.network + log))
        site.dated = max(math.floor(env.now), site.dated + 1)
        ahead = min(site.dated - env.now - AHEAD_S, AHEAD_S)
        site.publish_at = env.now + max(0 if full else scenario.interval, ahead)

    def _write(self, host: int, size: float, files: int) -> Steps:
        """Write `size` bytes and flush so many files, one after the other."""
        self.written += size
        yield from self.disks[host].serve(size * self.costs.write_s)
        seconds = self.chance.about(files * self.costs.flush_s, self.costs.flush_spread)
        yield self.env.timeout(seconds)

    def _seen(self, site: _Site, posted: Iterable[float]) -> None:
        now = self.visible_at = self.env.now
        for at in posted:
            self.visible += 1
            if at >= self.scenario.warm:
                self.lags.append((site.number, now - at))


_EMPTY = counts.Count(counts.READ.commands, 0, counts.READ.network)
