"""Layouts 2 and 3: the keys that belong to no site. A site may be called sitemapd, so their prefix
is another one now. Heartbeats, sessions and links expire, and are not moved.
"""

from __future__ import annotations

from typing import Any

import redis

from shared.store.client import answering
from shared.store.keys import EVERYWHERE

FORMER = "{sitemapd}:"
_AUDIT, _COUNTS = "audit", "counts"


def writers(client: redis.Redis) -> list[str]:
    """Return the live workers of layout 2, which would not notice that a site is moved."""
    with answering():
        known: Any = client.zrange(f"{FORMER}workers", 0, -1)
        names = [name.decode() for name in known]
        pipe = client.pipeline(transaction=False)
        for name in names:
            pipe.exists(f"{FORMER}worker:{name}")
        alive = pipe.execute()
    return [name for name, found in zip(names, alive, strict=True) if found]


def move_shared(client: redis.Redis, *, back: bool) -> None:
    """Add the audit log and the counts to those under the newer prefix, or under the older one."""
    now, then = (FORMER, EVERYWHERE) if back else (EVERYWHERE, FORMER)
    with answering():
        for name, add in ((_AUDIT, _add_entries), (_COUNTS, _add_counts)):
            if client.exists(then + name):
                add(client, then + name, now + name)


def _add_counts(client: redis.Redis, source: str, target: str) -> None:
    def add(pipe: Any) -> None:
        counted = pipe.hgetall(source)
        pipe.multi()
        for name, number in counted.items():
            pipe.hincrby(target, name, int(number))
        pipe.delete(source)

    client.transaction(add, source)


def _add_entries(client: redis.Redis, source: str, target: str) -> None:
    """Write the entries of both streams by their ids, in one transaction."""

    def add(pipe: Any) -> None:
        older, newer = dict(pipe.xrange(source)), dict(pipe.xrange(target))
        pipe.multi()
        if older:
            pipe.delete(source, target)
            for ident, fields in sorted((older | newer).items(), key=lambda each: _order(each[0])):
                pipe.xadd(target, fields, id=ident)

    client.transaction(add, source, target)


def _order(ident: bytes) -> tuple[int, int]:
    ms, _, sequence = ident.partition(b"-")
    return int(ms), int(sequence)
