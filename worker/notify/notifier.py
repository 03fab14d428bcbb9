"""Tell search engines of what was published, in threads of their own: no publish waits for them.

Messages may be lost, so it looks by itself, too. A request that was under way when the worker died
is sent again by whoever has the next turn.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor

import redis

from shared.errors import StoreError
from shared.settings import Settings
from shared.telemetry import logger
from worker.notify.contract import Outbound
from worker.notify.outbound import ask
from worker.notify.telling import Telling
from worker.settling import now_ms

LOOK_S = 10.0
AT_ONCE = 4
"""Engines told at once: one that hangs takes five seconds of one thread, then is left alone."""

_log = logger("notify")


class Notifier:
    """The engines of all sites, told by one worker, whose name is `owner`."""

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
        """While `quiet` says so nothing is begun; `clock` in ms since 1970; `jitter` gives numbers
        in 0..1.
        """
        self._quiet = quiet
        self._sites = {
            name: Telling(client, name, site, owner, clock=clock, outbound=outbound, jitter=jitter)
            for name, site in settings.sites.items()
            if site.notify.engines
        }
        self._asked, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look_for_ever, name="notify", daemon=True)
        self._pool = ThreadPoolExecutor(AT_ONCE, "notify")

    def start(self) -> None:
        """Begin to look."""
        if self._sites:
            self._thread.start()

    def stop(self) -> None:
        """Begin nothing more; a request that is under way ends by itself, soon."""
        self._stopping.set()
        self._asked.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def ask(self) -> None:
        """Something was published: look now."""
        self._asked.set()

    def look(self) -> bool:
        """Tell every engine that is due of one batch; whether one of them may have more."""
        due = [(site, engine) for site in self._sites.values() for engine in self._due(site)]
        futures = [self._pool.submit(self._tell, *each) for each in due]
        done = [future.result() for future in futures]  # of all: each has its turn
        return any(done)

    def _due(self, site: Telling) -> list[str]:
        try:
            return [] if self._quiet() else site.due()
        except StoreError as error:
            _log.error("notices failed", site=site.name, reason=str(error))
            return []

    def _tell(self, site: Telling, engine: str) -> bool:
        if self._stopping.is_set():
            return False
        try:
            return site.tell(engine)
        except StoreError as error:
            _log.error("notices failed", site=site.name, engine=engine, reason=str(error))
        except Exception:  # noqa: BLE001  # one engine's trouble is not the next one's
            _log.exception("notices failed", site=site.name, engine=engine)
        return False

    def _look_for_ever(self) -> None:
        while not self._stopping.is_set():
            self._asked.clear()
            try:
                while self.look() and not self._stopping.is_set():
                    pass
            except (RuntimeError, CancelledError):
                return  # stopped meanwhile
            self._asked.wait(LOOK_S)
