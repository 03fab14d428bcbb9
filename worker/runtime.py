"""All sites of one worker process: a pump each, the sweep that finds forgotten work, a heartbeat.

Wake-ups may be lost, doubled or late, and the schedule may be dead: the sweep runs inside every
worker too, and does the work itself instead of sending messages.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from shared.clock import now_ms
from shared.config.settings import Settings
from shared.errors import StoreError
from shared.logs import logger
from shared.sitemap.extensions import languages
from shared.store.client import answering, connect
from shared.store.counting import counter_buffer
from shared.store.operations.worker_registry import HEARTBEAT
from shared.store.retention import trim
from shared.task_names import REFRESH_S, SWEEP_S, TIDY_S
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
"""A wake-up takes milliseconds: an event that nobody has taken up by then has lost its own."""
SLICE_S = 1.0
"""How long a sweep stays with one site while others may wait."""

_log = logger("worker")


def consumer_name() -> str:
    """Of the worker of this process: the same after a restart, so that it finds what it was given
    before.
    """
    return os.environ.get("SITEMAPD_CONSUMER") or socket.gethostname()


class Companion(Protocol):
    """What a worker does besides events, in a thread of its own."""

    loop: Loop

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """Come to an end soon."""


class Runtime:
    """The pumps of every configured site, under the fixed name `consumer`.

    The name must be the same after a restart, and no two processes may have it at once.
    """

    def __init__(
        self, settings: Settings, consumer: str, clock: Callable[[], int] = now_ms,
        *, reconciles: bool = True, on_resync: Callable[[str], None] | None = None,
        on_publish: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        """`reconciles` if it answers resyncs; `on_resync` is told of each, by default itself.

        `on_publish` is told of a site that has search engines to be told of something; without it
        this worker tells them.
        """
        self._client = connect(settings.redis_url, REDIS_TIMEOUT_S)
        self._consumer, self._history = consumer, int(settings.history_mb * 1024 * 1024)
        self._answerer = (
            ReconcileScheduler(settings, self._client, consumer, self.wake, self.quiet)
            if reconciles
            else None
        )
        self._notifier = (
            None
            if on_publish
            else Notifier(settings, self._client, consumer, self.quiet, clock=clock)
        )
        self._published = on_publish or (lambda _site: self.notify())
        self._told = frozenset(name for name, site in settings.sites.items() if site.notify.engines)
        told = on_resync or (lambda _site: self.reconcile())
        self._pumps = {
            name: InboxConsumer(settings, self._client, name, consumer, clock, told)
            for name in settings.sites
        }
        self._checkers = {
            name: FileMonitor(self._pumps[name].publisher.state, name, site)
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
            subscriber = WebSubSubscriber(settings, self._client, self.quiet, clock=clock)
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
        """There may be work for `site`."""
        pump = self._pumps.get(site)
        if pump is None:
            _log.warning("woken for a site that is not configured", site=site)
            return
        if not self._heart.quiet:
            with self._heart.at(site):
                pump.run()
            if site in self._told:
                self._published(site)

    def notify(self) -> None:
        """There may be something to tell search engines."""
        if self._notifier is not None:
            self._notifier.ask()

    def quiet(self) -> bool:
        """Whether nothing new may be begun: an administrator wants it so."""
        return self._heart.quiet

    def busy(self) -> bool:
        """Whether some site is being worked on this moment."""
        return any(pump.running for pump in self._pumps.values())

    def reconcile(self) -> None:
        """There may be something to compare with its source."""
        if self._answerer is not None:
            self._answerer.ask()

    def start(
        self, threads: int = 1, on_quiet: Callable[[bool], None] = lambda _quiet: None
    ) -> None:
        """Begin to sweep and to beat, in a worker of so many `threads`.

        `on_quiet` is told when people want the worker quiet, and when it is to work again.
        """
        languages.load()  # 0.2 s, which no event should wait for
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
        """Finish the batches at hand and take no more."""
        self._stopping.set()
        self.watchdog.stop()
        self._heart.stop()
        for loop in self.loops:
            loop.stop()
        for each in self._companions:
            each.stop()
        for pump in self._pumps.values():
            pump.stop()

    def end(self) -> None:
        """Be gone, after `stop`, when nothing is at hand any more."""
        self._heart.end()
        with suppress(StoreError):
            self.watchdog.end()

    def sweep(self) -> bool:
        """Work on every site that has something left, whoever forgot it, a while each; whether
        one of them has more. A quiet worker leaves it to the others.
        """
        busy = False
        if self._heart.quiet:
            self._give_back()
            return busy
        for name, pump in self._pumps.items():
            if self._stopping.is_set():
                return False
            if self._sweeping.due(name, "expiry"):
                with self._sweeping.at(name, "expiry"):
                    pump.expire()
            if self._sweeping.due(name):
                with self._sweeping.at(name):
                    busy |= self._sweep(name, pump)
        return busy

    def _sweep(self, name: str, pump: InboxConsumer) -> bool:
        self._adopt(pump)
        trim(self._client, name, self._history)
        if pump.inbox.waiting() or pump.publisher.state.dirty(1):
            with self._heart.at(name):
                return pump.run(SLICE_S)
        return False

    def check(self) -> None:
        """Compare web roots and files with the state, a few at a time, where that is due."""
        for name, checker in self._checkers.items() if not self._heart.quiet else ():
            if self._monitoring.due(name):
                with self._monitoring.at(name):
                    self._watches[name].tick()
                    checker.tick()

    def tidy(self) -> None:
        """Forget deleted pages whose time has come, and empty a shard of each site that is nearly
        empty anyway.
        """
        for name, pump in self._pumps.items() if not self._heart.quiet else ():
            if self._tidying.due(name):
                with self._tidying.at(name):
                    self._tidy(name, pump)

    def _tidy(self, name: str, pump: InboxConsumer) -> None:
        while pump.pages.forget(now_ms()) and not self._stopping.is_set():
            self._tidying.progress()
        drained = drain_emptiest(pump.pages, pump.publisher.state)
        if drained is not None:
            _log.info("drained a nearly empty shard", site=name, shard=str(drained))

    def refresh(self) -> None:
        """Check every news entry against its hour."""
        for name, pump in self._pumps.items() if not self._heart.quiet else ():
            if self._refreshing.due(name):
                with self._refreshing.at(name):
                    seen = refresh(pump.pages, pump.publisher.state, self._refreshing.progress)
                    if seen:
                        _log.info("news checked", site=name, entries=seen, left=pump.expire())

    def dropped(self) -> None:
        """A message in a queue of Celery's was none of ours."""
        counter_buffer.of(self._client).add("", "messages_dropped")

    def _adopt(self, pump: InboxConsumer) -> None:
        if not pump.inbox.waiting():
            return
        if pump.forgotten(LATE_S):
            counter_buffer.of(self._client).add(pump.name, "wakeups_lost")
        holders = pump.inbox.holders()
        if self._consumer in holders and not pump.running:
            pump.look_again()
        others = [name for name in holders if name != self._consumer]
        with answering():
            dead = [name for name in others if not self._client.exists(f"{HEARTBEAT}{name}")]
        taken = pump.adopt(dead)
        if taken:
            counter_buffer.of(self._client).add(pump.name, "adopted", taken)
            _log.warning("took over events of a dead worker", site=pump.name, events=taken)

    def _be_quiet(self, quiet: bool) -> None:
        """Begin nothing new, or work again."""
        for pump in self._pumps.values():
            if quiet:
                pump.stop()
            else:
                pump.resume()
                if self._stopping.is_set():
                    pump.stop()
        self._on_quiet(quiet)

    def _give_back(self) -> None:
        """What a quiet worker holds nobody would take over: it lives."""
        for name, pump in self._pumps.items():
            if given := pump.give_back():
                _log.warning("gave events back", site=name, events=given)

    def _work(self) -> WorkDone:
        pumps = self._pumps.values()
        return WorkDone(sum(pump.events for pump in pumps), sum(pump.files for pump in pumps))

    def _sweep_and_count(self) -> bool:
        busy = self.sweep()
        with self._sweeping.at("", "counts"):
            counter_buffer.of(self._client).flush(self._client)
        return busy
