"""What keeps files of a site from being published: all of them, or single ones (RELIABILITY F31).

Webhook and console do not see the web root, so the worker that does records here what stands in
the way. A publish that is recorded clears it (commit_publish.lua).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import redis

from shared.sitemap.shards import Shard
from shared.store.client import answering
from shared.store.keys import Keys

ALL = "*"
"""The field that concerns the whole site; all others are shards."""

Kind = Literal["state", "disk"]
"""Why nothing is published: Redis and the files do not belong together, or the system refuses."""


class QuarantineCause(NamedTuple):
    """Why a file, or every file, is not published, and since when (s since 1970).

    `todo` is the remedy (empty: none is known but to mend the reason).
    """

    since: int
    kind: str
    reason: str
    todo: str = ""

    @classmethod
    def of(cls, stored: bytes) -> QuarantineCause:
        """The cause of what `Quarantine` stored; what is damaged is its own reason."""
        since, _, rest = stored.decode(errors="replace").partition(" ")
        kind, _, said = rest.partition(" ")
        reason, _, todo = said.partition("\n")
        return cls(int(since) if since.isascii() and since.isdigit() else 0, kind, reason, todo)


class Quarantine:
    """What is not published of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._key = client, Keys(site).quarantine

    def read(self) -> tuple[QuarantineCause | None, dict[Shard, QuarantineCause]]:
        """Why nothing is published (None: publishing goes on), and why single shards are not."""
        with answering():
            stored: Any = self._client.hgetall(self._key)
        return _read(stored)

    def stopped(self) -> QuarantineCause | None:
        """Why nothing is published; None if publishing goes on."""
        with answering():
            stored: Any = self._client.hget(self._key, ALL)
        return QuarantineCause.of(stored) if stored else None

    def stop(self, kind: Kind, reason: str, todo: str = "") -> bool:
        """Record that nothing is published; False if just that was recorded before."""
        return self._record(ALL, kind, reason, todo)

    def hold(self, shard: Shard, reason: str, todo: str = "") -> bool:
        """Record that `shard` is not published; False if just that was recorded before."""
        return self._record(str(shard), "file", reason, todo)

    def clear(self, *shards: Shard) -> None:
        """Forget about `shards`; without any, about the whole site."""
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
    """Those of `sites` of which nothing is published, and why; one round trip."""
    with answering():
        pipe = client.pipeline(transaction=False)
        for site in sites:
            pipe.hget(Keys(site).quarantine, ALL)
        stored = pipe.execute()
    return {
        site: QuarantineCause.of(each) for site, each in zip(sites, stored, strict=True) if each
    }


def _read(
    stored: Mapping[bytes, bytes],
) -> tuple[QuarantineCause | None, dict[Shard, QuarantineCause]]:
    whole = stored.get(ALL.encode())
    shards = {Shard.read(field): QuarantineCause.of(each) for field, each in sorted(stored.items())}
    return QuarantineCause.of(whole) if whole else None, {
        s: cause for s, cause in shards.items() if s
    }
