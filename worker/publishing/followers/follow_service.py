"""Followers of all sites of one process, in threads of their own: no publish pass waits for them.

Messages may be lost, so the service also looks by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import redis

from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.config.sites.targets import host_name
from worker.loops.companions import DutyThreads, SiteCompanion
from worker.loops.loop import Loop
from worker.publishing.followers.follower import Follower

AT_ONCE = 4
"""Targets written at once: a bucket that hangs blocks one thread for seconds, then backs off."""

PATIENCE_S = 1.0
"""Seconds that the others wait for a slow target before they are looked at again."""

LONGEST_S = 30.0
"""Longest back-off in seconds of a target that cannot be written."""

TIDY_S = 60.0
"""Seconds between two looks for files of earlier settings."""


class FollowService(SiteCompanion[list[Follower]]):
    """Followers that the worker `owner` runs: of the targets of its host, of sites with several.

    `wake` is called with a site and the hosts of its other targets after a publish.
    """

    POLL_S = 2.0

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str,
        quiet: Callable[[], bool] = lambda: False,
        wake: Callable[[str, set[str]], None] = lambda _site, _hosts: None,
    ) -> None:  # fmt: skip
        self._client, self._owner, self._wake = client, owner, wake
        self._tidied = dict[tuple[str, str], float]()
        super().__init__(settings, Loop("follow", longest_s=LONGEST_S), quiet)
        self._threads = DutyThreads[bool](self.loop, AT_ONCE)

    def _serves(self, site: Site) -> bool:
        return bool(site.several_targets)

    def _build(self, name: str, site: Site) -> list[Follower]:
        return followers_of(self._client, name, site, self._owner)

    def stop(self) -> None:
        """Begin nothing further; a request in progress ends by its deadline."""
        super().stop()
        self._threads.stop()

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
                self._threads.begin(name, each.ident, partial(self._follow, name, each))
        return any(self._threads.ended(PATIENCE_S).values())

    def _follow(self, name: str, follower: Follower) -> bool:
        key = name, follower.ident
        more, now = follower.tick(self.loop.progress), time.monotonic()
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
