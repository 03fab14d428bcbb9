"""Sites of one worker process: inbox consumers, the sweep for missed work, the heartbeat.

Wake-ups may be lost, doubled or late, and the schedule may be down: each worker therefore also runs
the sweep itself, and the sweep does the work directly instead of sending messages.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from shared.config.settings import Settings
from shared.errors import StoreError
from shared.sitemap.extensions import languages
from shared.store.client import answering, connect
from shared.store.counting import counter_buffer
from shared.store.operations.site_work import with_work
from shared.store.operations.worker_registry import HEARTBEAT
from shared.store.publishing.publish_state import PublishState
from shared.store.retention import trim
from shared.task_names import REFRESH_S, SWEEP_S, TIDY_S
from shared.telemetry.logs import logger
from worker.checks.examiner import Examiner
from worker.checks.file_monitor import FileMonitor
from worker.heartbeat import Heartbeat, WorkDone
from worker.ingest.inbox_consumer import InboxConsumer
from worker.loops import Loop
from worker.notify.notifier import Notifier
from worker.notify.websub_subscriber import WebSubSubscriber
from worker.publishing.news_refresh import refresh
from worker.publishing.shard_compaction import drain_emptiest
from worker.publishing.web_root_watch import WebRootWatch
from worker.reconcile.reconcile_scheduler import ReconcileScheduler
from worker.watchdog import Watchdog

REDIS_TIMEOUT_S = 10.0
LATE_S = 0.5
"""Seconds after which the wake-up of a waiting event counts as lost (it takes milliseconds)."""
SLICE_S = 1.0
"""Seconds that a sweep spends on one site before it turns to the next."""

_log = logger("worker")


class Companion(Protocol):
    """A background service of a worker, with a thread of its own."""

    loop: Loop

    def start(self) -> None:
        """Start the thread."""

    def stop(self) -> None:
        """Ask the thread to end soon."""


class Runtime:
    """All sites of one worker process, under the fixed name `consumer`.

    The name must be the same after a restart, and no two processes may have it at once.
    """

    def __init__(
        self, settings: Settings, consumer: str, clock: Callable[[], float] = time.time,
        *, reconciles: bool = True, on_resync: Callable[[str], None] | None = None,
        on_publish: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        """Create the services of a worker. With `reconciles` it carries out resync requests.
        `on_resync` is called with the site of each new one; by default this worker reconciles.
        `on_publish` is called with a site that may have pending notifications; by default this
        worker notifies. `clock`: seconds since 1970.
        """
        self._client = connect(settings.redis_url, REDIS_TIMEOUT_S)
        self._name, self._history = consumer, int(settings.history_mb * 1024 * 1024)
        self._now_ms: Callable[[], int] = lambda: round(clock() * 1000)
        self._answerer = self._notifier = None
        if reconciles:
            wake = self.wake
            self._answerer = ReconcileScheduler(settings, self._client, consumer, wake, self.quiet)
        if on_publish is None:
            self._notifier = Notifier(
                settings, self._client, consumer, self.quiet, clock=self._now_ms
            )
        self._published = on_publish or (lambda _site: self.notify())
        self._told = frozenset(name for name, site in settings.sites.items() if site.notify.engines)
        told = on_resync or (lambda _site: self.reconcile())
        self._consumers = {
            name: InboxConsumer(settings, self._client, name, consumer, clock, told)
            for name in settings.sites
        }
        self._states = {name: PublishState(self._client, name) for name in settings.sites}
        self._checkers = {
            name: FileMonitor(self._states[name], name, site)
            for name, site in settings.sites.items()
        }
        self._watches = {
            name: WebRootWatch(self._client, name, site, consumer)
            for name, site in settings.sites.items()
        }
        self._companions: list[Companion] = [Examiner(settings, self._client, consumer, self.busy)]
        if self._answerer is not None:
            self._companions.append(self._answerer)
        if self._notifier is not None:
            subscriber = WebSubSubscriber(settings, self._client, self.quiet, clock=self._now_ms)
            self._companions += [self._notifier, subscriber]
        self._sweeping, self._monitoring = Loop("sweep", longest_s=60.0), Loop("monitor")
        self._tidying, self._refreshing = Loop("tidy"), Loop("refresh")
        self._stopping = threading.Event()
        self._heart = Heartbeat(
            self._client, consumer, settings.sites, work=self._work, on_quiet=self._be_quiet
        )
        self._on_quiet: Callable[[bool], None] = lambda _quiet: None
        own = [self._heart.loop, self._sweeping, self._monitoring, self._tidying, self._refreshing]
        self.loops = [*own, *(each.loop for each in self._companions)]
        self.watchdog = Watchdog(self._client, consumer, self.loops)

    def wake(self, site: str) -> None:
        """Process what waits for `site`. Raises StoreError."""
        consumer = self._consumers.get(site)
        if consumer is None:
            _log.warning("wake-up for an unknown site", site=site)
            return
        if not self._heart.quiet:
            with self._heart.at(site):
                consumer.run()
            if site in self._told:
                self._published(site)

    def notify(self) -> None:
        """Look for pending notifications now."""
        if self._notifier is not None:
            self._notifier.ask()

    def quiet(self) -> bool:
        """Return True if this worker is quiet (takes no new work). Raises StoreError."""
        return self._heart.quiet

    def busy(self) -> bool:
        """Return True if an inbox consumer of this process is running."""
        return any(consumer.running for consumer in self._consumers.values())

    def reconcile(self) -> None:
        """Look for resync requests now."""
        if self._answerer is not None:
            self._answerer.ask()

    def start(
        self, threads: int = 1, on_quiet: Callable[[bool], None] = lambda _quiet: None
    ) -> None:
        """Start all loops of a worker with so many `threads`.

        `on_quiet` is called with True when the worker becomes quiet, with False when it works
        again.
        """
        languages.load()  # 0.03 s, before the first event
        self._on_quiet = on_quiet
        self._heart.start(threads)
        self._sweeping.start(self._sweep_and_count, SWEEP_S)
        self._monitoring.start(self.check, SWEEP_S)
        self._tidying.start(self.tidy, TIDY_S, first_s=TIDY_S)
        self._refreshing.start(self.refresh, REFRESH_S, first_s=REFRESH_S)
        self.watchdog.start()
        for each in self._companions:
            each.start()

    def stop(self) -> None:
        """Finish the batches in progress and take no more work."""
        self._stopping.set()
        self.watchdog.stop()
        self._heart.stop()
        for loop in self.loops:
            loop.stop()
        for each in self._companions:
            each.stop()
        for consumer in self._consumers.values():
            consumer.stop()

    def end(self) -> None:
        """Deregister the worker, after `stop`, once no work is in progress."""
        self._heart.end()
        with suppress(StoreError):
            self.watchdog.end()

    def sweep(self) -> bool:
        """Work on every site with events or patches left, up to SLICE_S seconds each; return True
        if a site has more. A quiet worker gives its events back instead. Raises StoreError.
        """
        busy = False
        if self._heart.quiet:
            self._give_back()
            return busy
        # One round trip for all sites, instead of five for each of hundreds that are idle.
        working = with_work(self._client, [*self._consumers], self._now_ms(), self._history)
        for name, consumer in self._consumers.items():
            if self._stopping.is_set():
                return False
            # Without work as well, so that a duty that failed is known to be sound again.
            if self._sweeping.due(name, "expiry"):
                with self._sweeping.at(name, "expiry"):
                    if name in working:
                        consumer.expire()
            if self._sweeping.due(name):
                with self._sweeping.at(name):
                    busy |= name in working and self._sweep(name, consumer)
        return busy

    def _sweep(self, name: str, consumer: InboxConsumer) -> bool:
        self._adopt(consumer)
        trim(self._client, name, self._history)
        if consumer.inbox.waiting() or consumer.publisher.waiting(1):
            with self._heart.at(name):
                return consumer.run(SLICE_S)
        return False

    def check(self) -> None:
        """Compare web roots and files with the state, a few at a time, where it is due."""
        for name, checker in self._checkers.items() if not self._heart.quiet else ():
            if self._monitoring.due(name):
                with self._monitoring.at(name):
                    self._watches[name].tick()
                    checker.tick()

    def tidy(self) -> None:
        """Purge expired tombstones, and empty one nearly empty shard of each site."""
        for name, consumer in self._consumers.items() if not self._heart.quiet else ():
            if self._tidying.due(name):
                with self._tidying.at(name):
                    self._tidy(name, consumer)

    def _tidy(self, name: str, consumer: InboxConsumer) -> None:
        while consumer.pages.purge_tombstones(self._now_ms()) and not self._stopping.is_set():
            self._tidying.progress()
        drained = drain_emptiest(consumer.pages, self._states[name])
        if drained is not None:
            _log.info("nearly empty shard compacted", site=name, shard=str(drained))

    def refresh(self) -> None:
        """Check the expiry time of every news entry."""
        for name, consumer in self._consumers.items() if not self._heart.quiet else ():
            if self._refreshing.due(name):
                with self._refreshing.at(name):
                    state, schedule = self._states[name], consumer.expiry.schedule
                    seen = refresh(consumer.pages, state, schedule, self._refreshing.progress)
                    if seen:
                        _log.info("news checked", site=name, entries=seen, left=consumer.expire())

    def dropped(self) -> None:
        """Count a message that the broker module dropped."""
        counter_buffer.of(self._client).add("", "messages_dropped")

    def _adopt(self, consumer: InboxConsumer) -> None:
        if not consumer.inbox.waiting():
            return
        if consumer.forgotten(LATE_S):
            counter_buffer.of(self._client).add(consumer.name, "wakeups_lost")
        holders = consumer.inbox.holders()
        if self._name in holders and not consumer.running:
            consumer.look_again()
        others = [name for name in holders if name != self._name]
        with answering():
            dead = [name for name in others if not self._client.exists(f"{HEARTBEAT}{name}")]
        taken = consumer.adopt(dead)
        if taken:
            counter_buffer.of(self._client).add(consumer.name, "adopted", taken)
            _log.warning("events of a dead worker adopted", site=consumer.name, events=taken)

    def _be_quiet(self, quiet: bool) -> None:
        """Stop all inbox consumers, or let them run again."""
        for consumer in self._consumers.values():
            if quiet:
                consumer.stop()
            else:
                consumer.resume()
                if self._stopping.is_set():
                    consumer.stop()
        self._on_quiet(quiet)

    def _give_back(self) -> None:
        """Give back the events of a quiet worker: it is alive, so others do not adopt them."""
        for name, consumer in self._consumers.items():
            if given := consumer.give_back():
                _log.warning("events given back", site=name, events=given)

    def _work(self) -> WorkDone:
        consumers = self._consumers.values()
        return WorkDone(sum(one.events for one in consumers), sum(one.files for one in consumers))

    def _sweep_and_count(self) -> bool:
        busy = self.sweep()
        with self._sweeping.at("", "counts"):
            counter_buffer.of(self._client).flush(self._client)
        return busy
