"""Sites of one worker process: inbox consumers, the sweep for missed work, the heartbeat.

Wake-ups may be lost, doubled or late, and the schedule may be down: each worker therefore also runs
the sweep itself, and the sweep does the work directly instead of sending messages.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from shared.config.settings import Settings
from shared.errors import StoreError
from shared.sitemap.extensions import languages
from shared.store.connection import PATIENCE_S, connect
from shared.store.counting import counter_buffer
from shared.store.operations.config_follower import LOOK_S
from shared.store.operations.site_work import with_work
from shared.store.retention import trim
from shared.task_names import SWEEP_S
from shared.telemetry.logs import logger
from worker.alerts.alerter import Alerter
from worker.checks.examiner import Examiner
from worker.ingest.inbox_consumer import InboxConsumer
from worker.looks.looker import Looker
from worker.loops.companions import Companion
from worker.loops.heartbeat import Heartbeat
from worker.loops.loop import Loop
from worker.loops.watchdog import Watchdog
from worker.notify.notifier import Notifier
from worker.notify.websub_subscriber import WebSubSubscriber
from worker.publishing.followers.follow_service import FollowService
from worker.publishing.upkeep.cross_submitter import CrossSubmitter
from worker.readback.read_back_service import ReadbackService
from worker.reconcile.reconcile_scheduler import ReconcileScheduler
from worker.sites.site_layouts import SiteLayouts
from worker.sites.site_upkeep import SiteUpkeep
from worker.sites.site_work import WorkedSites

LATE_S = 0.5
"""Seconds after which the wake-up of a waiting event counts as lost (it takes milliseconds)."""
TURN_S, SHORT_TURN_S = 0.5, 0.1
"""Seconds of one turn of a site; the short one while every thread is at work."""
SLICE_S = 1.0
"""Seconds that a sweep spends on one site before it turns to the next."""
SETTLE_S = 5.0
"""Seconds that a new configuration waits for the batches in progress, before it looks for work."""

_log = logger("worker")


class Runtime:
    """All sites of one worker process, under the fixed name `consumer`.

    The name must be the same after a restart, and no two processes may have it at once.
    """

    def __init__(
        self, settings: Settings, consumer: str, clock: Callable[[], float] = time.time,
        *, reconciles: bool = True, on_resync: Callable[[str], None] | None = None,
        on_publish: Callable[[str], None] | None = None,
        on_commit: Callable[[str, set[str]], None] = lambda _site, _hosts: None,
    ) -> None:  # fmt: skip
        """Create the services of a worker. With `reconciles` it carries out resync requests.
        `on_resync` is called with the site of each new one; by default this worker reconciles.
        `on_publish` is called with a site that may have pending notifications; by default this one
        notifies. `on_commit` is called with a site and its other hosts. `clock`: s since 1970.
        """
        self.client = connect(settings.redis_url, PATIENCE_S, settings.wait_replicas)
        self._name, self._history = consumer, 0
        self._now_ms: Callable[[], int] = lambda: round(clock() * 1000)
        of, self._answerer, self._notifier = (settings, self.client, consumer), None, None
        if reconciles:
            self._answerer = ReconcileScheduler(*of, self.wake, self.quiet)
        if on_publish is None:
            self._notifier = Notifier(*of, self.quiet, clock=self._now_ms)
        self._published = on_publish or (lambda _site: self.notify())
        self._told: frozenset[str] = frozenset()
        told = on_resync or (lambda _site: self.reconcile())
        self._sites = WorkedSites(self.client, consumer, clock, told)
        self._followers = FollowService(*of, self.quiet, on_commit)
        self._companions: list[Companion] = [
            Examiner(*of, self.busy), Alerter(*of, clock=self._now_ms), Looker(*of, self.quiet),
            CrossSubmitter(*of, self.quiet), self._followers,
        ]  # fmt: skip
        self._companions += [self._answerer] if self._answerer else []
        if self._notifier is not None:
            subscriber = WebSubSubscriber(settings, self.client, self.quiet, clock=self._now_ms)
            self._companions += [self._notifier, subscriber, ReadbackService(*of, self.quiet)]
        self._sweeping, self._following = Loop("sweep", longest_s=60.0), Loop("configuration")
        self.upkeep = SiteUpkeep(self._sites, self.quiet, self._now_ms)
        self._layouts = SiteLayouts(self.client, consumer, self._sweeping)
        self._stopping = threading.Event()
        self._heart = Heartbeat(
            self.client, consumer, settings.sites, work=lambda: self._sites.done,
            on_quiet=self._be_quiet,
        )  # fmt: skip
        self._on_quiet: Callable[[bool], None] = lambda _quiet: None
        own = [self._sweeping, *self.upkeep.loops, self._following]
        self.loops = [self._heart.loop, *own, *(each.loop for each in self._companions)]
        self.watchdog = Watchdog(self.client, consumer, self.loops)
        self._sites.prepare(settings)()
        self._take(settings)

    def _take(self, settings: Settings) -> None:
        self._history = int(settings.history_mb * 1024 * 1024)
        self._told = frozenset(name for name, site in settings.sites.items() if site.notify.engines)
        self._heart.sites = tuple(self._sites.consumers)

    def follow(self, settings: Settings) -> None:
        """Work by `settings` from the next batch of each site on; unchanged sites notice nothing.

        Everything is built before anything changes: if that fails, the old settings stay in force.
        """
        put_in_force = self._sites.prepare(settings)
        rest = [each.prepare(settings) for each in self._companions]
        replaced = put_in_force()
        for put in rest:
            put()
        self._take(settings)
        until = time.monotonic() + SETTLE_S
        for work in replaced:
            work.consumer.await_end(max(0.0, until - time.monotonic()))
        self._sweeping.ask()

    def wake(self, site: str) -> None:
        """Process what waits for `site`. Raises StoreError."""
        self._work(site, lambda consumer: consumer.run())

    def take_turn(self, site: str) -> bool:
        """Process what waits for `site` for a turn; True if the caller is to have it take another
        one, behind the sites that wait. Raises StoreError.
        """
        turn_s = SHORT_TURN_S if self._heart.all_others_busy else TURN_S
        return self._work(site, lambda consumer: consumer.run(turn_s, again=True))

    def _work(self, site: str, run: Callable[[InboxConsumer], bool]) -> bool:
        more = False
        if (consumer := self._sites.find(site)) is None:
            _log.warning("wake-up for an unknown site", site=site)
        elif not self._heart.quiet:
            with self._heart.at(site):
                more = run(consumer)
            self._sites.share(consumer, TURN_S)
            if site in self._told:
                self._published(site)
            self._followers.published(site)
        return more

    def follow_targets(self) -> None:
        """Look for publishes of sites with several targets now."""
        self._followers.ask()

    def notify(self) -> None:
        """Look for pending notifications now."""
        if self._notifier is not None:
            self._notifier.ask()

    def quiet(self) -> bool:
        """Return True if this worker is quiet (takes no new work). Raises StoreError."""
        return self._heart.quiet

    def busy(self) -> bool:
        """Return True if an inbox consumer of this process is running."""
        return self._sites.busy

    def reconcile(self) -> None:
        """Look for resync requests now."""
        if self._answerer is not None:
            self._answerer.ask()

    def start(
        self, threads: int = 1, on_quiet: Callable[[bool], None] = lambda _quiet: None,
        look_at_file: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Start all loops of a worker with so many `threads`.

        `on_quiet` is called with True when the worker becomes quiet, with False when it works
        again; `look_at_file` every LOOK_S seconds, to read a changed configuration.
        """
        languages.load()  # 0.03 s, before the first event
        self._on_quiet = on_quiet
        self._heart.start(threads)
        self._sweeping.start(self._sweep_and_count, SWEEP_S)
        self.upkeep.start()
        if look_at_file:
            self._following.start(look_at_file, LOOK_S)
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
        self._sites.stop()

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
            self._sites.give_back()
            return busy
        consumers = self._sites.consumers
        self._layouts.bring_up(consumers)
        # One round trip for all sites, instead of five for each of hundreds that are idle.
        working = with_work(self.client, [*consumers], self._now_ms(), self._history)
        # Without work as well, so that a duty that failed is known to be sound again.
        failed = self._sweeping.failing
        for name in [name for name in consumers if name in working or name in failed]:
            consumer = consumers[name]
            if self._stopping.is_set():
                return False
            if self._sweeping.due(name, "expiry"):
                with self._sweeping.at(name, "expiry"):
                    if name in working:
                        consumer.expire()
            if self._sweeping.due(name):
                with self._sweeping.at(name):
                    busy |= name in working and self._sweep(name, consumer)
        self._finish()
        return busy

    def _finish(self) -> None:
        """Leave the removed sites that are finished."""
        for name in self._sites.finish():
            self._heart.sites = tuple(self._sites.consumers)
            for loop in self.loops:
                loop.forget(name)

    def _sweep(self, name: str, consumer: InboxConsumer) -> bool:
        if consumer.awaits_turn():
            return False
        self._sites.adopt(consumer, LATE_S)
        trim(self.client, name, self._history)
        if consumer.inbox.waiting() or consumer.publisher.waiting(1):
            with self._heart.at(name):
                return consumer.run(SLICE_S)
        return False

    def dropped(self) -> None:
        """Count a message that the broker module dropped."""
        counter_buffer.of(self.client).add("", "messages_dropped")

    def _be_quiet(self, quiet: bool) -> None:
        """Stop all inbox consumers, or let them run again."""
        if quiet or self._stopping.is_set():
            self._sites.stop()
        else:
            self._sites.resume()
            if self._stopping.is_set():
                self._sites.stop()
        self._on_quiet(quiet)

    def _sweep_and_count(self) -> bool:
        busy = self.sweep()
        with self._sweeping.at("", "counts"):
            counter_buffer.of(self.client).flush(self.client)
        return busy
