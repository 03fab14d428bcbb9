"""Configured sites with the objects their requests need, and the circuit breaker of their store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import redis

from shared.admin.site_status import Inspector
from shared.config.settings import Settings
from shared.config.site import Site
from shared.errors import StoreDownError
from shared.events.event_fields import EventRules
from shared.store.inbox.inbox import Inbox
from webhook.auth import STRANGER, Credentials

PAUSE_S = 0.5


class Gate:
    """Lets requests through to Redis, and none for PAUSE_S (seconds) after Redis failed to answer.

    A Redis that hangs costs each request its whole timeout. Without a pause, the last of ten
    requests that wait for one thread would wait ten timeouts (RELIABILITY N5: a response within 3
    s).
    """

    def __init__(self) -> None:
        self._closed_until = 0.0

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Run commands. Raises StoreDownError if Redis does not answer, or failed to within PAUSE_S
        before.
        """
        if time.monotonic() < self._closed_until:
            raise StoreDownError("Redis did not answer a moment ago")
        try:
            yield
        except StoreDownError:
            self._closed_until = time.monotonic() + PAUSE_S
            raise


@dataclass(frozen=True, slots=True)
class Tenant:
    """One configured site."""

    name: str
    site: Site
    rules: EventRules
    tokens: tuple[bytes, ...]
    inbox: Inbox
    inspector: Inspector

    def credentials(self, now: float) -> Credentials:
        """Return the credentials that are valid at `now`, in seconds since 1970."""
        moment = datetime.fromtimestamp(now, UTC)
        keys = [key for secret in self.site.secrets if (key := secret.key(moment)) is not None]
        return Credentials(keys, self.tokens)


class Tenants:
    """All sites of `settings`, by name."""

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self._tenants = {
            name: Tenant(
                name,
                site,
                site.rules,
                tuple(token.get_secret_value().encode("ascii") for token in site.tokens),
                Inbox(client, name),
                Inspector(client, name, site),
            )
            for name, site in settings.sites.items()
        }

    @property
    def names(self) -> list[str]:
        """Names of the configured sites."""
        return list(self._tenants)

    def find(self, name: str, now: float) -> tuple[Tenant | None, Credentials]:
        """Return the site and its credentials at `now` (seconds since 1970); for an unknown site
        None and random credentials.
        """
        tenant = self._tenants.get(name)
        return tenant, STRANGER if tenant is None else tenant.credentials(now)
