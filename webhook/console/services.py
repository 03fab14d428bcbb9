"""What the pages of the console are made with, in one object."""

from __future__ import annotations

from dataclasses import dataclass

import redis

from shared.admin.dead_letters import DeadLetterActions
from shared.admin.events import EventActions
from shared.admin.queues import QueueActions
from shared.admin.site_status import Inspector
from shared.admin.timeline import Timelines
from shared.config.settings import Settings
from shared.config.site import Site
from shared.store.operations.audit_log import AuditLog
from shared.store.operations.sessions import Sessions
from shared.store.operations.worker_registry import WorkerRegistry
from webhook.tenants import Gate, Tenants
from webhook.wakeups import Wakeups


@dataclass(frozen=True, slots=True)
class Services:
    """The configuration, and the state behind the gate."""

    settings: Settings
    client: redis.Redis
    tenants: Tenants
    gate: Gate
    audit: AuditLog
    logins: Sessions
    waker: Wakeups

    @classmethod
    def of(
        cls, settings: Settings, client: redis.Redis, tenants: Tenants, gate: Gate, waker: Wakeups
    ) -> Services:  # fmt: skip
        """With the console's own logs on the same `client`."""
        return cls(settings, client, tenants, gate, AuditLog(client), Sessions(client), waker)

    @property
    def sites(self) -> dict[str, Site]:
        """The configured sites, by name."""
        return self.settings.sites

    def idle(self, site: str) -> bool:
        """Whether no worker is alive that could work for `site`."""
        return not any(worker.alive for worker in WorkerRegistry(self.client, [site]).list())

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

    def dead(self, site: str) -> DeadLetterActions:
        """The events of a configured site that failed."""
        return DeadLetterActions(self.client, site)
