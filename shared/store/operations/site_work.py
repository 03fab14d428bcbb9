"""Sites that may have work: found in few round trips for thousands of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import redis

from shared.batches import batches
from shared.store.client import Command, answering, kept_connections
from shared.store.keys import Keys, keys_of

_SITES = 500
"""Sites of one round trip: 2 ms of Redis, which serves others in between."""
_QUESTIONS = 5


def with_work(
    client: redis.Redis, sites: Sequence[str], now_ms: int, most_bytes: int
) -> frozenset[str]:
    """Return those of `sites` with waiting events, dirty shards, entries due at `now_ms` (ms since
    1970), or a stream above `most_bytes`.

    A site of which one of these cannot be read is among them: the work itself meets the error.
    """
    found = set[str]()
    connections = kept_connections(client)
    for names in batches(sites, _SITES):
        commands = list[Command]()
        for keys in map(keys_of, names):
            commands += [
                ("XLEN", keys.inbox), ("ZCARD", keys.dirty),
                ("ZCOUNT", keys.expiry, "-inf", now_ms),
                ("MEMORY", "USAGE", keys.recent), ("MEMORY", "USAGE", keys.revisions),
            ]  # fmt: skip
        try:
            replies = connections.exchange(*commands)
        except redis.RedisError:
            return frozenset(sites)
        for at, name in enumerate(names):
            *counts, recent, revisions = replies[at * _QUESTIONS : (at + 1) * _QUESTIONS]
            if counts == [0, 0, 0] and _fits(recent, most_bytes) and _fits(revisions, most_bytes):
                continue
            found.add(name)
    return frozenset(found)


def _fits(size: Any, most_bytes: int) -> bool:
    return size is None or (isinstance(size, int) and size <= most_bytes)


def with_resyncs(client: redis.Redis, sites: Iterable[str]) -> set[str]:
    """Return those of `sites` with resync requests, or of which these cannot be read. Raises
    StoreError.
    """
    found = _each(client, sites, lambda keys: ("ZCARD", keys.resync))
    return {name for name, reply in found.items() if reply != 0}


def with_checks_asked(client: redis.Redis, sites: Iterable[str]) -> set[str]:
    """Return those of `sites` with requested checks, likewise. Raises StoreError."""
    found = _each(client, sites, lambda keys: ("ZCARD", keys.check_requests))
    return {name for name, reply in found.items() if reply != 0}


def checks_begun(client: redis.Redis, sites: Iterable[str]) -> dict[str, int]:
    """Return when the last check of each of `sites` began (ms since 1970; 0: none, or it cannot be
    read). Raises StoreError.
    """
    found = _each(client, sites, lambda keys: ("HGET", keys.checks, "began"))
    return {name: int(reply) if _is_number(reply) else 0 for name, reply in found.items()}


def _is_number(reply: Any) -> bool:
    return isinstance(reply, bytes) and reply.isdigit()


def _each(
    client: redis.Redis, sites: Iterable[str], asked: Callable[[Keys], Command]
) -> dict[str, Any]:
    """Return the replies, errors of the server among them, by site. Raises StoreError."""
    found = dict[str, Any]()
    connections = kept_connections(client)
    for names in batches(sites, _SITES):
        with answering():
            replies = connections.exchange(*(asked(keys_of(name)) for name in names))
        found |= dict(zip(names, replies, strict=True))
    return found
