"""What the pages of the console are made with, in one object."""

from __future__ import annotations

from dataclasses import dataclass

import redis

from shared.inspector import Inspector
from shared.settings import Settings
from shared.sites import Site
from shared.store.audit import Audit
from shared.store.logins import Logins
from webhook.tenants import Gate, Tenants


@dataclass(frozen=True, slots=True)
class Services:
    """The configuration, and the state behind the gate."""

    settings: Settings
    client: redis.Redis
    tenants: Tenants
    gate: Gate
    audit: Audit
    logins: Logins

    @classmethod
    def of(
        cls, settings: Settings, client: redis.Redis, tenants: Tenants, gate: Gate
    ) -> Services:  # fmt: skip
        """With the console's own logs on the same `client`."""
        return cls(settings, client, tenants, gate, Audit(client), Logins(client))

    @property
    def sites(self) -> dict[str, Site]:
        """The configured sites, by name."""
        return self.settings.sites

    def inspector(self, site: str) -> Inspector:
        """Who answers about a configured site."""
        return Inspector(self.client, site, self.sites[site])
