"""Followers of all sites of one process, in threads of their own: no publish pass waits for them.

Messages may be lost, so the service also looks by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress

import redis

from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.config.sites.targets import host_name
from worker.loops import Loop
from worker.publishing.followers.follower import Follower

POLL_S = 2.0
AT_ONCE = 4
"""Targets written at once: a bucket that hangs blocks one thread for seconds, then backs off."""

PATIENCE_S = 1.0
"""Seconds that the others wait for a slow target before they are looked at again."""

LONGEST_S = 30.0
"""Longest back-off in seconds of a target that cannot be written."""

TIDY_S = 60.0
"""Seconds between two looks for files of earlier settings."""


class FollowService:
    """Followers that the worker `owner` runs: of the targets of its host, of sites with several.

    `wake` is called with a site and the hosts of its other targets after a publish.
    """

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str,
        quiet: Callable[[], bool] = lambda: False,
        wake: Callable[[str, set[str]], None] = lambda _site, _hosts: None,
    ) -> None:  # fmt: skip
        self._client, self._owner, self._quiet, self._wake = client, owner, quiet, wake
        self.loop, self._stopping = Loop("follow", longest_s=LONGEST_S), threading.Event()
        self._pool = ThreadPoolExecutor(AT_ONCE, "follow")
        self._sites = dict[str, tuple[Site, list[Follower]]]()
        self._under_way = dict[tuple[str, str], Future[bool]]()
        self._tidied = dict[tuple[str, str], float]()
        self._wanted = False
        self.prepare(settings)()

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Build the followers of new and changed sites; the returned function puts them in
        force.
        """
        known, host = self._sites, host_name()
        built = {
            name: known[name]
            if name in known and known[name][0] == site
            else (site, followers_of(self._client, name, site, self._owner, host))
            for name, site in settings.sites.items()
            if site.several_targets
        }

        def put_in_force() -> None:
            self._sites = built
            self._begin_loop()

        return put_in_force

    def start(self) -> None:
        """Start the loop, with the first site that has several targets."""
        self._wanted = True
        self._begin_loop()

    def _begin_loop(self) -> None:
        if self._wanted and self._sites and not self.loop.started:
            self.loop.start(self.look, POLL_S)

    def stop(self) -> None:
        """Begin nothing further; a request in progress ends by its deadline."""
        self._stopping.set()
        self.loop.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def ask(self) -> None:
        """Look for publishes now."""
        self.loop.ask()

    def published(self, site: str) -> None:
        """Have the other targets of `site` follow, those of other hosts by messages."""
        if site in self._sites:
            self.loop.ask()
            own = host_name()
            hosts = {each.host for each in self._sites[site][0].every_target if each.host != own}
            self._wake(site, hosts)

    def look(self) -> bool:
        """Bring every target that is behind up to date; return True if one may have more to do.

        Waits for slow ones at most PATIENCE_S seconds.
        """
        for name, (_, followers) in self._sites.items():
            for each in [] if self._quiet() else followers:
                if self.loop.due(name, each.ident):
                    self._begin(name, each)
        done, left = wait(self._under_way.values(), PATIENCE_S)
        self._under_way = {key: of for key, of in self._under_way.items() if of in left}
        return any(not each.cancelled() and each.result() for each in done)

    def _begin(self, name: str, follower: Follower) -> None:
        if (name, follower.ident) not in self._under_way and not self._stopping.is_set():
            with suppress(RuntimeError):  # the pool was shut down meanwhile
                following = self._pool.submit(self._follow, name, follower)
                self._under_way[name, follower.ident] = following

    def _follow(self, name: str, follower: Follower) -> bool:
        more, key = False, (name, follower.ident)
        with self.loop.at(*key):
            more = follower.tick(self.loop.progress)
            now = time.monotonic()
            if not more and now > self._tidied.setdefault(key, now) + TIDY_S:
                self._tidied[key] = now
                follower.tidy()
        return more


def followers_of(
    client: redis.Redis, name: str, site: Site, owner: str, host: str | None = None
) -> list[Follower]:
    """Return the followers of the targets that `host`, by default this one, writes; none of a site
    with a single target.
    """
    several = site.targets_of(host or host_name()) if site.several_targets else ()
    return [Follower(client, name, site, settings, owner) for settings in several]
