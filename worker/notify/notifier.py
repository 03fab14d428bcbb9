"""Notify search engines of published changes, in threads of their own: no publish pass waits for
them.

Messages may be lost, so the notifier also polls. The worker with the next delivery lease repeats a
request that was in progress when its worker died.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import redis

from shared.clock import now_ms
from shared.config.settings import Settings
from shared.config.sites.site import Site
from worker.http.client import ask
from worker.http.exchange import Outbound
from worker.loops.companions import DutyThreads, SiteCompanion
from worker.loops.loop import Loop
from worker.notify.dispatcher import Dispatcher

AT_ONCE = 4
"""Engines notified at once: one that hangs blocks one thread for five seconds, then backs off."""

PATIENCE_S = 2.0
"""Seconds that the others wait for a slow engine before they are notified again."""


class Notifier(SiteCompanion[Dispatcher]):
    """Notifications of all sites, sent by the worker `owner`."""

    POLL_S = 10.0

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
        self._dispatcher = partial(
            Dispatcher, client, owner=owner, clock=clock, outbound=outbound, jitter=jitter
        )
        super().__init__(settings, Loop("notify"), quiet)
        self._threads = DutyThreads[bool](self.loop, AT_ONCE)

    def _serves(self, site: Site) -> bool:
        return bool(site.notify.engines)

    def _build(self, name: str, site: Site) -> Dispatcher:
        return self._dispatcher(name=name, site=site)

    def stop(self) -> None:
        """Start no further notification; a request in progress ends by its deadline."""
        super().stop()
        self._threads.stop()

    def look(self) -> bool:
        """Notify every due engine of one batch; return True if one of them may have more.

        Waits for the engines, for slow ones at most PATIENCE_S seconds.
        """
        for name, (_, site) in self._sites.items():
            with self.loop.at(name):
                for engine in [] if self._quiet() else site.due():
                    notify = partial(site.notify, engine, self.loop.progress)
                    self._threads.begin(name, engine, notify)
        ended = self._threads.ended(PATIENCE_S)
        return self._threads.under_way or any(ended.values())
