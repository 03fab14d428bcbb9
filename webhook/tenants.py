"""Configured sites with the objects their requests need, and the circuit breaker of their store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import redis

from shared.admin.site_status import Inspector
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.errors import StoreDownError
from shared.events.event import Event
from shared.events.event_fields import EventRules
from shared.store.inbox.inbox import AcceptResult, Inbox
from shared.store.servers.replica_wait import ReplicaWait
from webhook.auth import STRANGER, Credentials, SigningKey

PAUSE_S = 0.5


class Gate:
    """Lets requests through to Redis, and none for PAUSE_S (seconds) after Redis failed to answer.

    A Redis that hangs costs each request its whole timeout. Without a pause, the last of ten
    requests that wait for one thread would wait ten timeouts (RELIABILITY N5: a response within 3
    s).
    """

    def __init__(self) -> None:
        self._closed_until = 0.0

    def check(self) -> None:
        """Raise StoreDownError if Redis failed to answer within PAUSE_S before."""
        if time.monotonic() < self._closed_until:
            raise StoreDownError("Redis did not answer a moment ago")

    def close(self) -> None:
        """Let nobody through for PAUSE_S: Redis failed to answer."""
        self._closed_until = time.monotonic() + PAUSE_S

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Run commands. Raises StoreDownError if Redis does not answer, or failed to within PAUSE_S
        before.
        """
        self.check()
        try:
            yield
        except StoreDownError:
            self.close()
            raise


@dataclass(frozen=True, slots=True)
class Tenant:
    """One configured site."""

    name: str
    site: Site
    rules: EventRules
    credentials: Credentials
    inbox: Inbox
    inspector: Inspector
    gate: Gate
    inbox_limit: int

    def accept(self, events: list[Event], *, delivery: str | None, digest: str) -> AcceptResult:
        """Store the events of one delivery, all or none, within the limits of the site. Raises
        StoreError, and StoreDownError at once if Redis failed to answer a moment ago.

        `delivery` is the sender's id of this delivery, if any, `digest` that of its body.
        """
        self.gate.check()
        try:
            return self.inbox.accept(
                events,
                delivery=delivery,
                digest=digest,
                most=self.inbox_limit,
                rate=self.site.rate,
            )
        except StoreDownError:
            self.gate.close()
            raise


class Tenants:
    """All sites of `settings`, by name."""

    def __init__(self, settings: Settings, client: redis.Redis, gate: Gate) -> None:
        wait = ReplicaWait(settings.wait_replicas, settings.wait_replicas_ms)
        self._tenants = {
            name: Tenant(
                name,
                site,
                site.rules,
                _credentials(site),
                Inbox(client, name, wait),
                Inspector(client, name, site),
                gate,
                settings.inbox_limit,
            )
            for name, site in settings.sites.items()
        }

    @property
    def names(self) -> list[str]:
        """Names of the configured sites."""
        return list(self._tenants)

    def find(self, name: str) -> tuple[Tenant | None, Credentials]:
        """Return the site and its credentials; for an unknown site None and random credentials."""
        tenant = self._tenants.get(name)
        return tenant, STRANGER if tenant is None else tenant.credentials


def _credentials(site: Site) -> Credentials:
    return Credentials(
        [SigningKey(secret.raw, secret.fingerprint, secret.expires) for secret in site.secrets],
        [token.get_secret_value().encode("ascii") for token in site.tokens],
    )
