"""Lease of one kind of background work of a site: one worker does it at a time."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from shared.errors import StoreError
from shared.store.client import Scripts, answering

LEASE_MS = 60_000
"""Lifetime of the lease (ms), extended before each request; a request takes 20 s at most."""


class LeaseLostError(StoreError):
    """Another worker does this work of the site now."""


class SiteLease:
    """The right to one kind of work of one site."""

    def __init__(self, client: redis.Redis, key: str, token: str) -> None:
        self._scripts, self._key, self._token = Scripts(client), key, token

    def keep(self) -> None:
        """Extend the lease. Raises LeaseLostError if it was lost."""
        if not self._scripts("publishing/extend_lease", [self._key], self._token, LEASE_MS):
            raise LeaseLostError("another worker does this work of the site now")


@contextmanager
def site_lease(client: redis.Redis, key: str, owner: str) -> Iterator[SiteLease | None]:
    """Hold the lease `key` for the block; None if another worker holds it. Raises StoreError."""
    token = f"{owner}:{secrets.token_hex(8)}"
    with answering():
        free = client.set(key, token, nx=True, px=LEASE_MS)
    if not free:
        yield None
        return
    try:
        yield SiteLease(client, key, token)
    finally:
        Scripts(client)("lua/unlock", [key], token)
