"""Reading back of all sites, in a thread of its own: one worker reads the engines of a site."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import redis

from shared.clock import now_ms
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.store.keys import keys_of
from shared.store.site_lease import SiteLease, site_lease
from worker.http.client import ask
from worker.http.exchange import READ_BACK, Outbound
from worker.loops import Loop
from worker.readback.site_readback import LOOKS_A_MINUTE, SiteReadback

POLL_S = 60.0 / LOOKS_A_MINUTE

_ASK = partial(ask, bounds=READ_BACK)


class ReadbackService:
    """Reading back of all sites, by the worker `owner`; it has no thread without such a site."""

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str,
        quiet: Callable[[], bool] = lambda: False, *, clock: Callable[[], int] = now_ms,
        outbound: Outbound = _ASK,
        jitter: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        """Prepare the sites that read back. While `quiet` returns True nothing is read."""
        self._client, self._owner, self._quiet = client, owner, quiet
        self._make = partial(SiteReadback, client, clock=clock, outbound=outbound, jitter=jitter)
        self._sites = dict[str, tuple[Site, SiteReadback]]()
        self.loop, self._wanted = Loop("readback"), False
        self.prepare(settings)()

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Build what new and changed sites need; the returned function puts it in force."""
        known = self._sites
        built = {
            name: known[name]
            if name in known and known[name][0] == site
            else (site, self._make(name=name, site=site))
            for name, site in settings.sites.items()
            if site.readback.engines
        }

        def put_in_force() -> None:
            for name in known.keys() - built.keys():
                self.loop.forget(name)
            self._sites = built
            self._begin()

        return put_in_force

    def start(self) -> None:
        """Start the loop, with the first site that reads back."""
        self._wanted = True
        self._begin()

    def _begin(self) -> None:
        if self._wanted and self._sites and not self.loop.started:
            self.loop.start(self.look, POLL_S)

    def stop(self) -> None:
        """Read nothing further; a request in progress ends by its deadline."""
        self.loop.stop()

    def look(self) -> None:
        """Follow what was published, and ask the engines about what is due."""
        for name, (_, site) in self._sites.items():
            if self.loop.stopping or self._quiet():
                return
            if self.loop.due(name):
                key = keys_of(name).readback_lease
                with self.loop.at(name), site_lease(self._client, key, self._owner) as lease:
                    if lease is not None:
                        self._read(name, site, lease)

    def _read(self, name: str, site: SiteReadback, lease: SiteLease) -> None:
        def before() -> None:
            self.loop.progress()
            lease.keep()

        site.before = before
        while site.follower.look():
            before()
        for engine in site.readers:
            if self.loop.due(name, engine) and not self.loop.stopping:
                with self.loop.at(name, engine):
                    site.read(engine)
        site.sum_up()
