"""Companions of a worker: background services, each with a supervised loop of its own.

A companion states how often it makes a pass, the pass itself, and for which settings it is switched
on. Its thread begins when it is switched on for the first time: without that it costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ALL_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from worker.loops.loop import Loop

if TYPE_CHECKING:
    from shared.config.settings import Settings
    from shared.config.sites.site import Site

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


class Companion(ABC):
    """A background service of a worker, with a thread of its own."""

    POLL_S: ClassVar[float]
    """Seconds between two passes."""
    FIRST_S: ClassVar[float] = 0.0
    """Seconds before the first one."""

    def __init__(self, loop: Loop) -> None:
        """Prepare a companion that makes its passes in `loop`."""
        self.loop, self._begun = loop, False

    @abstractmethod
    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Build what `settings` need; the returned function puts it in force."""

    @abstractmethod
    def look(self) -> object:
        """Make one pass; return True if another one is to follow at once."""

    @property
    def switched_on(self) -> bool:
        """True if there is work for a thread by the settings in force."""
        return True

    def start(self) -> None:
        """Start the thread, as soon as the companion is switched on."""
        self._begun = True
        self._begin_loop()

    def _begin_loop(self) -> None:
        if self._begun and self.switched_on and not self.loop.started:
            self.loop.start(self.look, self.POLL_S, first_s=self.FIRST_S)

    def ask(self) -> None:
        """Make a pass now."""
        self.loop.ask()

    def stop(self) -> None:
        """Begin nothing further; a request in progress ends by its deadline."""
        self.loop.stop()


class SiteCompanion(Companion, Generic[_Work]):
    """A companion of those sites that it serves: for each it keeps an object that does the work,
    until the settings of the site change.
    """

    def __init__(
        self, settings: Settings, loop: Loop, quiet: Callable[[], bool] = lambda: False
    ) -> None:
        """Build what the sites need: a subclass has set what its `_build` uses before.

        While `quiet` returns True the pass of a subclass begins nothing.
        """
        super().__init__(loop)
        self._quiet = quiet
        self._sites: Mapping[str, tuple[Site, _Work]] = {}
        self.prepare(settings)()

    @abstractmethod
    def _serves(self, site: Site) -> bool:
        """Return True if the companion is switched on for `site`."""

    @abstractmethod
    def _build(self, name: str, site: Site) -> _Work:
        """Return what does the work for one site."""

    @property
    def switched_on(self) -> bool:
        """True if there is such a site."""
        return bool(self._sites)

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Build what new and changed sites need; the returned function puts it in force."""
        known = self._sites
        built = {
            name: known[name]
            if name in known and known[name][0] == site
            else (site, self._build(name, site))
            for name, site in settings.sites.items()
            if self._serves(site)
        }

        def put_in_force() -> None:
            self._sites = built
            for name in known:
                if built.get(name) is not known[name]:
                    self.loop.forget(name)
            self._begin_loop()

        return put_in_force


class DutyThreads(Generic[_Result]):
    """Threads in which a companion does up to `at_once` duties of its loop, each of them once at a
    time: one that hangs blocks one thread.
    """

    def __init__(self, loop: Loop, at_once: int) -> None:
        self._loop, self._pool = loop, ThreadPoolExecutor(at_once, loop.name)
        self._under_way = dict[tuple[str, str], Future[_Result | None]]()

    def may(self, site: str, part: str = "") -> bool:
        """Return True if a duty is neither under way nor backing off."""
        return (site, part) not in self._under_way and self._loop.due(site, part)

    def begin(self, site: str, part: str, work: Callable[[], _Result]) -> None:
        """Begin a duty if it may begin, and the loop was not stopped."""
        if self.may(site, part) and not self._loop.stopping:
            with suppress(RuntimeError):  # the pool was shut down meanwhile
                self._under_way[site, part] = self._pool.submit(self._run, site, part, work)

    def _run(self, site: str, part: str, work: Callable[[], _Result]) -> _Result | None:
        result = None
        if not self._loop.stopping:
            with self._loop.at(site, part):
                result = work()
        return result

    def queued(self, site: str, part: str = "") -> bool:
        """Return True if a duty waits for a thread."""
        begun = self._under_way.get((site, part))
        return begun is not None and not begun.running() and not begun.done()

    @property
    def under_way(self) -> bool:
        """True if a duty was begun and has not been collected."""
        return bool(self._under_way)

    def ended(
        self, seconds: float, return_when: str = ALL_COMPLETED
    ) -> dict[tuple[str, str], _Result | None]:
        """Wait up to `seconds`, and return the result of each duty that has ended; None of one that
        failed.
        """
        wait(self._under_way.values(), seconds, return_when)
        done = {key: each for key, each in self._under_way.items() if each.done()}
        for key in done:
            del self._under_way[key]
        return {key: None if each.cancelled() else each.result() for key, each in done.items()}

    def stop(self) -> None:
        """Begin none of those that wait for a thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)
