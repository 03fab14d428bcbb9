"""All sites of one worker process: a pump each, the sweep that finds forgotten work, a heartbeat.

Wake-ups may be lost, doubled or late, and the schedule may be dead: the sweep runs inside every
worker too, and does the work itself instead of sending messages.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol

from shared.errors import StoreError
from shared.extensions import languages
from shared.messages import REFRESH_S, SWEEP_S, TIDY_S
from shared.settings import Settings
from shared.store import tally
from shared.store.redis import answering, connect
from shared.store.room import trim
from shared.store.workers import HEARTBEAT
from shared.telemetry import logger
from worker.answering import Answerer
from worker.checking import Checker
from worker.draining import drain_emptiest
from worker.examining.examiner import Examiner
from worker.heart import Heart, Work
from worker.notify.notifier import Notifier
from worker.pump import Pump
from worker.refreshing import refresh
from worker.settling import now_ms
from worker.subscribing import Subscriber
from worker.watching import Watch

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

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """Come to an end soon."""


class Plant:
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
            Answerer(settings, self._client, consumer, self.wake, self.quiet)
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
            name: Pump(settings, self._client, name, consumer, clock, told)
            for name in settings.sites
        }
        self._checkers = {
            name: Checker(self._pumps[name].publisher.state, name, site)
            for name, site in settings.sites.items()
        }
        self._watches = {
            name: Watch(self._client, name, site, consumer) for name, site in settings.sites.items()
        }
        self._companions: list[Companion] = [Examiner(settings, self._client, consumer, self.busy)]
        if self._answerer is not None:
            self._companions.append(self._answerer)
        if self._notifier is not None:
            subscriber = Subscriber(settings, self._client, self.quiet, clock=clock)
            self._companions += [self._notifier, subscriber]
        self._stopping = threading.Event()
        self._heart = Heart(
            self._client, consumer, settings.sites, work=self._work, on_quiet=self._be_quiet
        )
        self._on_quiet: Callable[[bool], None] = lambda _quiet: None
        self._sweeper = threading.Thread(target=self._sweep_for_ever, name="sweep", daemon=True)
        self._tidied_at = self._refreshed_at = time.monotonic()

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
        self._sweeper.start()
        for each in self._companions:
            each.start()

    def stop(self) -> None:
        """Finish the batches at hand and take no more."""
        self._stopping.set()
        self._heart.stop()
        for each in self._companions:
            each.stop()
        for pump in self._pumps.values():
            pump.stop()

    def end(self) -> None:
        """Be gone, after `stop`, when nothing is at hand any more."""
        self._heart.end()

    def sweep(self) -> bool:
        """Work on every site that has something left, whoever forgot it, a while each; whether
        one of them has more. A quiet worker leaves it to the others.
        """
        busy = False
        if self._heart.quiet:
            self._give_back()
            return busy
        for name, pump in self._pumps.items():
            try:
                self._adopt(pump)
                trim(self._client, name, self._history)
                if pump.expire() or pump.inbox.waiting() or pump.publisher.state.dirty(1):
                    with self._heart.at(name):
                        busy |= pump.run(SLICE_S)
            except StoreError as error:
                _log.error("sweep failed", site=name, reason=str(error))
            except Exception:  # noqa: BLE001  # one site's trouble is not the next one's
                _log.exception("sweep failed", site=name)
        return busy

    def check(self) -> None:
        """Compare web roots and files with the state, a few at a time, where that is due."""
        for name, checker in self._checkers.items() if not self._heart.quiet else ():
            try:
                self._watches[name].tick()
                checker.tick()
            except StoreError as error:
                _log.error("check failed", site=name, reason=str(error))
            except Exception:  # noqa: BLE001  # one site's trouble is not the next one's
                _log.exception("check failed", site=name)

    def tidy(self) -> None:
        """Forget deleted pages whose time has come, and empty a shard of each site that is nearly
        empty anyway.
        """
        for name, pump in self._pumps.items() if not self._heart.quiet else ():
            while pump.pages.forget(now_ms()) and not self._stopping.is_set():
                pass
            drained = drain_emptiest(pump.pages, pump.publisher.state)
            if drained is not None:
                _log.info("drained a nearly empty shard", site=name, shard=str(drained))

    def refresh(self) -> None:
        """Check every news entry against its hour."""
        for name, pump in self._pumps.items() if not self._heart.quiet else ():
            seen = refresh(pump.pages, pump.publisher.state)
            if seen:
                _log.info("news checked", site=name, entries=seen, left=pump.expire())

    def _adopt(self, pump: Pump) -> None:
        if not pump.inbox.waiting():
            return
        if pump.forgotten(LATE_S):
            tally.of(self._client).add(pump.name, "wakeups_lost")
        others = [name for name in pump.inbox.holders() if name != self._consumer]
        with answering():
            dead = [name for name in others if not self._client.exists(f"{HEARTBEAT}{name}")]
        taken = pump.adopt(dead)
        if taken:
            tally.of(self._client).add(pump.name, "adopted", taken)
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

    def _work(self) -> Work:
        pumps = self._pumps.values()
        return Work(sum(pump.events for pump in pumps), sum(pump.files for pump in pumps))

    def _sweep_for_ever(self) -> None:
        busy = True
        while not self._stopping.wait(0 if busy else SWEEP_S):
            busy = False
            try:
                busy = self.sweep()
                self.check()
                tally.of(self._client).flush(self._client)
                if time.monotonic() - self._tidied_at > TIDY_S:
                    self._tidied_at = time.monotonic()
                    self.tidy()
                if time.monotonic() - self._refreshed_at > REFRESH_S:
                    self._refreshed_at = time.monotonic()
                    self.refresh()
            except StoreError as error:
                _log.error("sweep failed", reason=str(error))
            except Exception:  # noqa: BLE001  # the last guard: nobody restarts a thread
                _log.exception("sweep failed")
