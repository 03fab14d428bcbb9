"""Sites that may have work for a sweep, found in one round trip for many of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import redis

from shared.batches import batches
from shared.store.keys import Keys

_SITES = 1_000
"""Sites of one round trip."""


def with_work(
    client: redis.Redis, sites: Sequence[str], now_ms: int, most_bytes: int
) -> frozenset[str]:
    """Return those of `sites` with waiting events, dirty shards, entries due at `now_ms` (ms since
    1970), or a stream above `most_bytes`.

    A site of which one of these cannot be read is among them: the work itself meets the error.
    """
    found = set[str]()
    for names in batches(sites, _SITES):
        pipe: Any = client.pipeline(transaction=False)
        for name in names:
            keys = Keys(name)
            pipe.xlen(keys.inbox).zcard(keys.dirty).zcount(keys.expiry, "-inf", now_ms)
            pipe.memory_usage(keys.recent).memory_usage(keys.revisions)
        try:
            replies = iter(pipe.execute(raise_on_error=False))
        except redis.RedisError:
            return frozenset(sites)
        for name in names:
            counts, sizes = [*islice(replies, 3)], [*islice(replies, 2)]
            damaged = any(isinstance(each, Exception) for each in (*counts, *sizes))
            if damaged or any(counts) or any((size or 0) > most_bytes for size in sizes):
                found.add(name)
    return frozenset(found)
