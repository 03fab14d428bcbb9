"""Leases: one process at a time has the right to one kind of work.

That to publish a site is not one of these: it is taken in the round trip that reads the patches
(publishing/begin_publish.lua).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.client import Pipeline
from redis.exceptions import WatchError

from shared.errors import StoreError
from shared.store.client import Scripts, answering

LEASE_MS = 60_000
"""Lifetime of a lease (ms): more than two requests of 20 s, before each of which it is extended."""


class LeaseLostError(StoreError):
    """Another worker does this work now."""


class Lease:
    """The right to one kind of work, in the string `key`, by the process `owner`."""

    def __init__(
        self, client: redis.Redis, key: str, owner: str, lifetime_ms: int = LEASE_MS
    ) -> None:
        self._client, self._scripts = client, Scripts(client)
        self.key, self.owner, self._lifetime_ms = key, owner, lifetime_ms
        self.token = f"{owner}:{secrets.token_hex(8)}"

    def take(self, *, over: bool = False) -> bool:
        """Take the lease; False if it is held. With `over` it is taken from its holder."""
        with answering():
            stored = self._client.set(self.key, self.token, nx=not over, px=self._lifetime_ms)
        return bool(stored)

    def extend(self, ms: int = 0) -> bool:
        """Have the lease last its lifetime from now on, or `ms`; False if it was lost."""
        ms = ms or self._lifetime_ms
        return bool(self._scripts("publishing/extend_lease", [self.key], self.token, ms))

    def keep(self) -> None:
        """Extend the lease. Raises LeaseLostError if it was lost."""
        if not self.extend():
            raise LeaseLostError("another worker does this work of the site now")

    def release(self) -> None:
        """Release the lease, if it is still held."""
        self._scripts("lua/unlock", [self.key], self.token)

    def holder(self) -> str:
        """Return the owner that holds the lease; empty if none does."""
        with answering():
            token: Any = self._client.get(self.key)
        return str((token or b"").decode(errors="replace").rpartition(":")[0])

    def write(self, commands: Callable[[Pipeline], object]) -> bool:
        """Run the commands in one transaction; False if the lease was lost: nothing is written."""
        with answering(), self._client.pipeline() as pipe:
            pipe.watch(self.key)  # type: ignore[no-untyped-call]
            if pipe.get(self.key) != self.token.encode():
                return False
            pipe.multi()
            commands(pipe)
            try:
                pipe.execute()
            except WatchError:
                return False
        return True


@contextmanager
def held_lease(client: redis.Redis, key: str, owner: str) -> Iterator[Lease | None]:
    """Hold the lease `key` for the block; None if another worker holds it. Raises StoreError."""
    lease = Lease(client, key, owner)
    if not lease.take():
        yield None
        return
    try:
        yield lease
    finally:
        lease.release()
