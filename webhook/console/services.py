"""What the pages of the console are made with, in one object."""

from __future__ import annotations

from dataclasses import dataclass

import redis

from shared.admin.dead import DeadActions
from shared.admin.events import EventActions
from shared.admin.queues import QueueActions
from shared.admin.timeline import Timelines
from shared.inspector import Inspector
from shared.settings import Settings
from shared.sites import Site
from shared.store.audit import Audit
from shared.store.logins import Logins
from shared.store.workers import Workers
from webhook.tenants import Gate, Tenants
from webhook.waker import Waker


@dataclass(frozen=True, slots=True)
class Services:
    """The configuration, and the state behind the gate."""

    settings: Settings
    client: redis.Redis
    tenants: Tenants
    gate: Gate
    audit: Audit
    logins: Logins
    waker: Waker

    @classmethod
    def of(
        cls, settings: Settings, client: redis.Redis, tenants: Tenants, gate: Gate, waker: Waker
    ) -> Services:  # fmt: skip
        """With the console's own logs on the same `client`."""
        return cls(settings, client, tenants, gate, Audit(client), Logins(client), waker)

    @property
    def sites(self) -> dict[str, Site]:
        """The configured sites, by name."""
        return self.settings.sites

    def idle(self, site: str) -> bool:
        """Whether no worker is alive that could work for `site`."""
        return not any(worker.alive for worker in Workers(self.client, [site]).list())

    def inspector(self, site: str) -> Inspector:
        """Who answers about a configured site."""
        return Inspector(self.client, site, self.sites[site])

    def events(self, site: str) -> EventActions:
        """The events of a configured site."""
        return EventActions(self.client, site, self.settings.inbox_limit)

    def timelines(self, site: str) -> Timelines:
        """Who follows the events of a configured site."""
        return Timelines(self.client, site, self.sites[site])

    def queues(self, site: str) -> QueueActions:
        """The queues of a configured site."""
        return QueueActions(self.client, site, tuple(self.sites[site].notify.engines))

    def dead(self, site: str) -> DeadActions:
        """The events of a configured site that failed."""
        return DeadActions(self.client, site)
