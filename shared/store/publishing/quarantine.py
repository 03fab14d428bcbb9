"""Quarantine of a site: the whole site or single shards that are not published (RELIABILITY F31).

Webhook and console have no access to the web root, so the worker records the cause here. A recorded
publish clears it (commit_publish.lua).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import redis

from shared.sitemap.shards import Shard
from shared.store.client import answering
from shared.store.keys import keys_of

ALL = "*"
"""Field of the whole site; all others are shards."""

Kind = Literal["state", "disk"]
"""Cause of a site's quarantine: Redis and files do not match, or the system reports an error."""


class QuarantineCause(NamedTuple):
    """Cause of a quarantine, and its start (s since 1970).

    `todo` is the remedy (empty: none is known besides removing the cause).
    """

    since: int
    kind: str
    reason: str
    todo: str = ""

    @classmethod
    def of(cls, stored: bytes) -> QuarantineCause:
        """Return the cause that `Quarantine` stored; a damaged record becomes its own reason."""
        since, _, rest = stored.decode(errors="replace").partition(" ")
        kind, _, said = rest.partition(" ")
        reason, _, todo = said.partition("\n")
        return cls(int(since) if since.isascii() and since.isdigit() else 0, kind, reason, todo)


class Quarantine:
    """Quarantine of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._key = client, keys_of(site).quarantine

    def read(self) -> tuple[QuarantineCause | None, dict[Shard, QuarantineCause]]:
        """Return the cause for the whole site (None: publishing continues), and those by shard."""
        with answering():
            stored: Any = self._client.hgetall(self._key)
        return causes_of(stored)

    def stopped(self) -> QuarantineCause | None:
        """Return the cause for the whole site; None if publishing continues."""
        with answering():
            stored: Any = self._client.hget(self._key, ALL)
        return QuarantineCause.of(stored) if stored else None

    def stop(self, kind: Kind, reason: str, todo: str = "") -> bool:
        """Quarantine the whole site; False if the same cause was recorded before."""
        return self._record(ALL, kind, reason, todo)

    def hold(self, shard: Shard, reason: str, todo: str = "") -> bool:
        """Quarantine `shard`; False if the same cause was recorded before."""
        return self._record(str(shard), "file", reason, todo)

    def clear(self, *shards: Shard) -> None:
        """End the quarantine of `shards`; without any, that of the whole site."""
        with answering():
            self._client.hdel(self._key, *(map(str, shards) if shards else (ALL,)))

    def _record(self, field: str, kind: str, reason: str, todo: str) -> bool:
        with answering():
            stored: Any = self._client.hget(self._key, field)
            before = QuarantineCause.of(stored) if stored else None
            if before and before[1:] == (kind, reason, todo):
                return False
            since = before.since if before else int(time.time())
            self._client.hset(self._key, field, f"{since} {kind} {reason}\n{todo}")
        return True


def stopped(client: redis.Redis, sites: Sequence[str]) -> dict[str, QuarantineCause]:
    """Return the causes of those of `sites` that are quarantined as a whole; one round trip."""
    with answering():
        pipe = client.pipeline(transaction=False)
        for site in sites:
            pipe.hget(keys_of(site).quarantine, ALL)
        stored = pipe.execute()
    return {
        site: QuarantineCause.of(each) for site, each in zip(sites, stored, strict=True) if each
    }


def causes_of(
    stored: Mapping[bytes, bytes],
) -> tuple[QuarantineCause | None, dict[Shard, QuarantineCause]]:
    """Return what `Quarantine.read` does, from the stored hash."""
    whole = stored.get(ALL.encode())
    shards = {Shard.read(field): QuarantineCause.of(each) for field, each in sorted(stored.items())}
    return QuarantineCause.of(whole) if whole else None, {
        s: cause for s, cause in shards.items() if s
    }
