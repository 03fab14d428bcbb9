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
from shared.store.leases import Lease, held_lease
from worker.http.client import ask
from worker.http.exchange import READ_BACK, Outbound
from worker.loops.companions import SiteCompanion
from worker.loops.loop import Loop
from worker.readback.site_readback import LOOKS_A_MINUTE, SiteReadback

_ASK = partial(ask, bounds=READ_BACK)


class ReadbackService(SiteCompanion[SiteReadback]):
    """Reading back of all sites, by the worker `owner`; it has no thread without such a site."""

    POLL_S = 60.0 / LOOKS_A_MINUTE

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str,
        quiet: Callable[[], bool] = lambda: False, *, clock: Callable[[], int] = now_ms,
        outbound: Outbound = _ASK,
        jitter: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        """Prepare the sites that read back. While `quiet` returns True nothing is read."""
        self._client, self._owner = client, owner
        self._make = partial(SiteReadback, client, clock=clock, outbound=outbound, jitter=jitter)
        super().__init__(settings, Loop("readback"), quiet)

    def _serves(self, site: Site) -> bool:
        return bool(site.readback.engines)

    def _build(self, name: str, site: Site) -> SiteReadback:
        return self._make(name=name, site=site)

    def look(self) -> None:
        """Follow what was published, and ask the engines about what is due."""
        for name, (_, site) in self._sites.items():
            if self.loop.stopping or self._quiet():
                return
            if self.loop.due(name):
                key = keys_of(name).readback_lease
                with self.loop.at(name), held_lease(self._client, key, self._owner) as lease:
                    if lease is not None:
                        self._read(name, site, lease)

    def _read(self, name: str, site: SiteReadback, lease: Lease) -> None:
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
