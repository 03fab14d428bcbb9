"""Layouts 2 and 3: the keys of a section behind a word of their own, so that a section may have the
name of a key; the same for what belongs to engines, and for what belongs to no site.

Claims stay under the owners of layout 2, which are digests that nothing turns into others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import redis

from shared.batches import batches
from shared.sitemap.shards import Shard
from shared.store.client import answering
from shared.store.keys import Keys, keys_of
from shared.store.layouts.version import OWNERS

FROM, TO = 2, 3
_SHARDS = 100
"""Shards of one step: 300 keys are renamed in less than a millisecond."""

Moves = list[tuple[str, str]]
"""Names of keys, the older and the newer one."""


def steps(client: redis.Redis, site: str) -> Iterator[Moves]:
    """Yield the keys of each step, those that are moved already included.

    The hashes that name the shards of a section come after its shards, so that a migration that was
    interrupted finds all that is left.
    """
    keys = keys_of(site)
    yield [
        (f"{keys.prefix}notify:dead", keys.notice_dead),
        (f"{keys.prefix}notify:breakers", keys.breakers),
    ]
    with answering():
        sections: Any = client.hkeys(keys.sections)
    for name in sorted(each.decode() for each in sections):
        listed = [(_former(keys, name, last), now) for last, now in _hashes(keys, name)]
        for numbers in batches(_numbers(client, listed), _SHARDS):
            yield [move for number in numbers for move in _moves(keys, Shard(name, number))]
        yield listed


def count(client: redis.Redis, site: str) -> int:
    """Return about how many keys `steps` yields."""
    keys = keys_of(site)
    with answering():
        sections: Any = client.hkeys(keys.sections)
        pipe: Any = client.pipeline(transaction=False)
        for name in sections:
            pipe.hlen(keys.shards(name.decode())).hlen(_former(keys, name.decode(), "shards"))
        shards: list[int] = pipe.execute()
        return 2 + 2 * len(sections) + 3 * sum(shards)


def at_end(*, back: bool) -> Mapping[str, str]:
    """Return the fields of `counters` that say what the keys do not, set as the migration ends."""
    return {} if back else {OWNERS: str(FROM)}


def obstacle(client: redis.Redis, site: str) -> str:
    """Return why the site cannot be moved back; empty if it can."""
    keys = keys_of(site)
    with answering():
        if client.hexists(keys.counters, OWNERS):
            return ""
        claims = next(client.scan_iter(f"{keys.prefix}id:*", count=10_000), None)
    if claims is None:
        return ""
    return f"the ids of its pages are stored as layout {TO} does: layout {FROM} would not find them"


def left_behind(client: redis.Redis, site: str) -> list[str]:
    """Return what layout 2 does not know of and would lose, in words."""
    with answering():
        coming = int(client.hlen(keys_of(site).coming))
    return [f"{coming} entries and events scheduled for later: send them again"] if coming else []


def _hashes(keys: Keys, section: str) -> Moves:
    return [("files", keys.files(section)), ("shards", keys.shards(section))]


def _former(keys: Keys, section: str, last: str) -> str:
    return f"{keys.prefix}{section}:{last}"


def _numbers(client: redis.Redis, listed: Moves) -> list[int]:
    with answering():
        pipe = client.pipeline(transaction=False)
        for name in [name for pair in listed for name in pair]:
            pipe.hkeys(name)
        found = pipe.execute()
    return sorted({int(number) for fields in found for number in fields})


def _moves(keys: Keys, shard: Shard) -> Moves:
    now = (keys.pending(shard), keys.taking(shard), keys.blocks(shard))
    words = ("pending", "taking", "blocks")
    return [
        (_former(keys, shard.section, f"{word}:{shard.number}"), name)
        for word, name in zip(words, now, strict=True)
    ]
