"""Shrink holds (RELIABILITY T32): list and confirm them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import redis

from shared.clock import now_ms
from shared.sitemap.shards import Shard
from shared.store.client import answering
from shared.store.keys import confirmed_field, keys_of


class ShrinkHold(NamedTuple):
    """Shrink hold of one shard since `since` (s since 1970).

    It would list `urls` pages, compared with `reference` pages recently.
    """

    since: int
    urls: int
    reference: int


class ShrinkHolds:
    """Shrink holds of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client = client
        self._keys = keys_of(site)

    def held(self) -> dict[Shard, ShrinkHold]:
        """Return the shrink holds by shard, in order."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.held)
        return holds_of(stored)

    def confirm(self, shown: Mapping[Shard, int]) -> None:
        """Let these shards shrink to the numbers of pages that were `shown`, and no further."""
        now = now_ms()
        with answering():
            pipe = self._client.pipeline()
            for shard, urls in shown.items():
                pipe.hset(self._keys.allowed, confirmed_field(shard), str(urls))
                pipe.hdel(self._keys.held, str(shard))
                pipe.zadd(self._keys.dirty, {str(shard): now}, nx=True)
            pipe.execute()


def holds_of(stored: Mapping[bytes, bytes]) -> dict[Shard, ShrinkHold]:
    """Return what `ShrinkHolds.held` does, from the stored hash."""
    shards = ((Shard.read(name), hold) for name, hold in stored.items())
    found = {shard: ShrinkHold(*map(int, hold.split())) for shard, hold in shards if shard}
    return dict(sorted(found.items()))
