"""Looks at the pages of all sites that are configured for it, in threads of their own.

Everything is loaded with the first such site: the others cost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import redis

from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.errors import SitemapdError
from worker.loops.companions import DutyThreads, SiteCompanion
from worker.loops.loop import Loop

if TYPE_CHECKING:
    from worker.looks.site_looks import SiteLooks

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


class Looker(SiteCompanion["SiteLooks"]):
    """Looks at the pages of all sites, by the worker `owner`."""

    POLL_S = 1.0

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str,
        quiet: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """Prepare the looks; while `quiet` returns True none is started."""
        self._client, self._owner = client, owner
        self._due = dict[str, float]()  # site -> monotonic time of its next look (s)
        super().__init__(settings, Loop("looks", first_s=BACK_OFF_S, longest_s=600.0), quiet)
        self._threads = DutyThreads[float](self.loop, AT_ONCE)

    def _serves(self, site: Site) -> bool:
        return site.pages is not None

    def _build(self, name: str, site: Site) -> SiteLooks:
        from worker.looks.site_looks import SiteLooks

        return SiteLooks(self._client, name, site, self._owner)

    def stop(self) -> None:
        """Start no further look, and abort those in progress."""
        super().stop()
        self._threads.stop()

    def look(self) -> bool:
        """Begin every look that is due; return True if another one is, within POLL_S seconds."""
        if self._quiet():
            return False
        self._due = {name: self._due.get(name, 0.0) for name in self._sites}
        self._begin(time.monotonic())
        ended = self._threads.ended(self._pause_s(), FIRST_COMPLETED)
        for (name, _), rest_s in ended.items():
            self._due[name] = time.monotonic() + (self.POLL_S if rest_s is None else rest_s)
        pause_s = self._pause_s()
        if pause_s < self.POLL_S and not self._threads.under_way:
            self.loop.wait(pause_s)
        return self._threads.under_way or pause_s < self.POLL_S

    def _begin(self, now: float) -> None:
        for name, at in self._due.items():
            if at <= now:
                if self._threads.queued(name):
                    self._starving(name, now - at)
                self._threads.begin(name, "", partial(self._look, name))

    def _pause_s(self) -> float:
        """Return the seconds until a further look may be due, at most POLL_S."""
        idle = [at for name, at in self._due.items() if self._threads.may(name)]
        return max(0.0, min([self.POLL_S, *(at - time.monotonic() for at in idle)]))

    def _starving(self, name: str, late_s: float) -> None:
        if late_s > STARVED_S:
            with self.loop.at(name, "queue"):
                raise StarvedError(f"a look waits for a thread for {late_s:.0f} s: hosts hang")

    def _look(self, name: str) -> float:
        """Look at one page of a site; return the seconds until its next look."""
        rest_s = self.POLL_S
        if name in self._sites:
            with suppress(_StoppedError):
                rest_s = self._sites[name][1].look(self._go_on)
        return rest_s

    def _go_on(self) -> None:
        self.loop.progress()
        if self.loop.stopping:
            raise _StoppedError("the worker stops")
