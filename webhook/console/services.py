"""Dependencies of the console's pages, in one object."""

from __future__ import annotations

from dataclasses import dataclass

import redis

from shared.admin.dead_letters import DeadLetterActions
from shared.admin.events import EventActions
from shared.admin.queues import QueueActions, messages
from shared.admin.site_status import Inspector
from shared.admin.timeline import Timelines
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.store.operations.audit_log import AuditLog
from shared.store.operations.sessions import Sessions
from shared.store.operations.worker_registry import WorkerRegistry
from webhook.tenants import Gate, Tenants
from webhook.wakeups import Wakeups


@dataclass(frozen=True, slots=True)
class Services:
    """The configuration, the Redis client with its gate, and the logs of the console."""

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
        """Return the services, with the audit log and the sessions on the same `client`."""
        return cls(settings, client, tenants, gate, AuditLog(client), Sessions(client), waker)

    @property
    def sites(self) -> dict[str, Site]:
        """The configured sites, by name."""
        return self.settings.sites

    def messages(self) -> dict[str, int]:
        """Return the number of wake-ups in each queue of the broker. Raises StoreError."""
        return self.waker.queued() if self.settings.broker_url else messages(self.client)

    def idle(self) -> bool:
        """Return True if no worker lives. Raises StoreError."""
        return not any(worker.alive for worker in WorkerRegistry(self.client).list())

    def inspector(self, site: str) -> Inspector:
        """Return the Inspector of a configured site."""
        return Inspector(self.client, site, self.sites[site])

    def events(self, site: str) -> EventActions:
        """Return the event actions of a configured site."""
        return EventActions(self.client, site, self.settings.inbox_limit)

    def timelines(self, site: str) -> Timelines:
        """Return the timelines of the events of a configured site."""
        return Timelines(self.client, site, self.sites[site])

    def queues(self, site: str) -> QueueActions:
        """Return the queue actions of a configured site."""
        return QueueActions(self.client, site, tuple(self.sites[site].notify.engines))

    def dead(self, site: str) -> DeadLetterActions:
        """Return the dead letter actions of a configured site."""
        return DeadLetterActions(self.client, site)
