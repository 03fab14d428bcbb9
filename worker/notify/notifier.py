"""Notify search engines of published changes, in threads of their own: no publish pass waits for
them.

Messages may be lost, so the notifier also polls. The worker with the next delivery lease repeats a
request that was in progress when its worker died.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial

import redis

from shared.clock import now_ms
from shared.config.settings import Settings
from shared.config.sites.site import Site
from worker.http.client import ask
from worker.http.exchange import Outbound
from worker.loops import Loop
from worker.notify.dispatcher import Dispatcher

POLL_S = 10.0
AT_ONCE = 4
"""Engines notified at once: one that hangs blocks one thread for five seconds, then backs off."""

PATIENCE_S = 2.0
"""Seconds that the others wait for a slow engine before they are notified again."""


class Notifier:
    """Notifications of all sites, sent by the worker `owner`."""

    def __init__(
        self,
        settings: Settings,
        client: redis.Redis,
        owner: str,
        quiet: Callable[[], bool] = lambda: False,
        *,
        clock: Callable[[], int] = now_ms,
        outbound: Outbound = ask,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Prepare the dispatchers of all sites with engines.

        While `quiet` returns True no notification is started; `clock` gives milliseconds since
        1970, `jitter` numbers in 0..1.
        """
        self._quiet, self._dispatchers = quiet, dict[str, tuple[Site, Dispatcher]]()
        self._dispatcher = partial(
            Dispatcher, client, owner=owner, clock=clock, outbound=outbound, jitter=jitter
        )
        self.loop, self._stopping = Loop("notify"), threading.Event()
        self._pool = ThreadPoolExecutor(AT_ONCE, "notify")
        self._under_way: dict[tuple[str, str], Future[bool]] = {}
        self._wanted = False
        self.prepare(settings)()

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Build dispatchers for new and changed sites; the returned function puts them in force."""
        known = self._dispatchers
        built = {
            name: known[name]
            if name in known and known[name][0] == site
            else (site, self._dispatcher(name=name, site=site))
            for name, site in settings.sites.items()
            if site.notify.engines
        }

        def put_in_force() -> None:
            self._dispatchers = built
            self._begin_loop()

        return put_in_force

    def start(self) -> None:
        """Start the loop, with the first site that has engines."""
        self._wanted = True
        self._begin_loop()

    def _begin_loop(self) -> None:
        if self._wanted and self._dispatchers and not self.loop.started:
            self.loop.start(self.look, POLL_S)

    def stop(self) -> None:
        """Start no further notification; a request in progress ends by its deadline."""
        self._stopping.set()
        self.loop.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def ask(self) -> None:
        """Look for due notifications now."""
        self.loop.ask()

    def look(self) -> bool:
        """Notify every due engine of one batch; return True if one of them may have more.

        Waits for the engines, for slow ones at most PATIENCE_S seconds.
        """
        for name, (_, site) in self._dispatchers.items():
            with self.loop.at(name):
                for engine in [] if self._quiet() else site.due():
                    if self.loop.due(name, engine):
                        self._begin(site, engine)
        done, left = wait(self._under_way.values(), PATIENCE_S)
        self._under_way = {key: of for key, of in self._under_way.items() if of in left}
        return bool(left) or any(not each.cancelled() and each.result() for each in done)

    def _begin(self, site: Dispatcher, engine: str) -> None:
        if (site.name, engine) not in self._under_way and not self._stopping.is_set():
            with suppress(RuntimeError):  # the pool was shut down meanwhile
                telling = self._pool.submit(self._notify, site, engine)
                self._under_way[site.name, engine] = telling

    def _notify(self, site: Dispatcher, engine: str) -> bool:
        more = False
        if not self._stopping.is_set():
            with self.loop.at(site.name, engine):
                more = site.notify(engine, self.loop.progress)
        return more
