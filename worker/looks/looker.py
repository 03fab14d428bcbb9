"""Looks at the pages of all sites that are configured for it, in threads of their own.

Everything is loaded with the first such site: the others cost nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING

import redis

from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.errors import SitemapdError
from worker.loops import Loop

if TYPE_CHECKING:
    from worker.looks.site_looks import SiteLooks

POLL_S = 1.0
AT_ONCE = 4
"""Hosts asked at once by one worker: a host that hangs blocks one thread for some seconds."""
BACK_OFF_S = 61.0
"""Longer than a host rests after an error: what fails is red until a look succeeds."""
STARVED_S = 45.0
"""Seconds for which a look that is due may wait for a thread."""


class StarvedError(SitemapdError):
    """Looks that are due and wait for others, which take too long."""


class _StoppedError(SitemapdError):
    """The worker stops: the look was aborted, and the next worker repeats it."""


class Looker:
    """Looks at the pages of all sites, by the worker `owner`."""

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str,
        quiet: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """Prepare the looks; while `quiet` returns True none is started."""
        self._client, self._owner, self._quiet = client, owner, quiet
        self._sites: dict[str, tuple[Site, SiteLooks]] = {}
        self._due = dict[str, float]()  # site -> monotonic time of its next look (s)
        self._under_way = dict[str, Future[float]]()
        self._pool, self._stopping = ThreadPoolExecutor(AT_ONCE, "looks"), threading.Event()
        self.loop, self._wanted = Loop("looks", first_s=BACK_OFF_S, longest_s=600.0), False
        self.prepare(settings)()

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Build what new and changed sites need; the returned function puts it in force."""
        wanted = {name: site for name, site in settings.sites.items() if site.pages}
        known = self._sites
        built = {
            name: known[name]
            if name in known and known[name][0] == site
            else self._built(name, site)
            for name, site in wanted.items()
        }

        def put_in_force() -> None:
            self._sites = built
            self._due = {name: self._due.get(name, 0.0) for name in built}
            self._begin_loop()

        return put_in_force

    def _built(self, name: str, site: Site) -> tuple[Site, SiteLooks]:
        from worker.looks.site_looks import SiteLooks

        return site, SiteLooks(self._client, name, site, self._owner)

    def start(self) -> None:
        """Start the loop, with the first site that is configured for it."""
        self._wanted = True
        self._begin_loop()

    def _begin_loop(self) -> None:
        if self._wanted and self._sites and not self.loop.started:
            self.loop.start(self.look, POLL_S)

    def stop(self) -> None:
        """Start no further look, and abort those in progress."""
        self._stopping.set()
        self.loop.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def look(self) -> bool:
        """Begin every look that is due; return True if another one is, within POLL_S seconds."""
        if self._quiet():
            return False
        self._begin(time.monotonic())
        wait(self._under_way.values(), self._pause_s(), return_when=FIRST_COMPLETED)
        for name in [name for name, of in self._under_way.items() if of.done()]:
            done = self._under_way.pop(name)
            rest_s = POLL_S if done.cancelled() else done.result()
            if name in self._due:
                self._due[name] = time.monotonic() + rest_s
        pause_s = self._pause_s()
        if pause_s < POLL_S and not self._under_way:
            self._stopping.wait(pause_s)
        return bool(self._under_way) or pause_s < POLL_S

    def _begin(self, now: float) -> None:
        for name, at in self._due.items():
            if at > now or self._stopping.is_set():
                continue
            if self._may(name):
                with suppress(RuntimeError):  # the pool was shut down meanwhile
                    self._under_way[name] = self._pool.submit(self._look, name)
            elif name in self._under_way and not self._under_way[name].running():
                self._starving(name, now - at)

    def _pause_s(self) -> float:
        """Return the seconds until a further look may be due, at most POLL_S."""
        idle = [at for name, at in self._due.items() if self._may(name)]
        return max(0.0, min([POLL_S, *(at - time.monotonic() for at in idle)]))

    def _may(self, name: str) -> bool:
        return name not in self._under_way and self.loop.due(name)

    def _starving(self, name: str, late_s: float) -> None:
        if late_s > STARVED_S:
            with self.loop.at(name, "queue"):
                raise StarvedError(f"a look waits for a thread for {late_s:.0f} s: hosts hang")

    def _look(self, name: str) -> float:
        """Look at one page of a site; return the seconds until its next look."""
        rest_s = POLL_S
        if not self._stopping.is_set() and name in self._sites:
            with self.loop.at(name), suppress(_StoppedError):
                rest_s = self._sites[name][1].look(self._go_on)
        return rest_s

    def _go_on(self) -> None:
        self.loop.progress()
        if self._stopping.is_set():
            raise _StoppedError("the worker stops")
