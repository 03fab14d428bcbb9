"""The check that a server loses no acknowledged event by its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis

from shared.errors import StoreDownError, StoreError, UnsafeStoreError
from shared.store.client import answering

OLDEST = (7, 0)


def masters(client: redis.Redis) -> Sequence[redis.Redis]:
    """Return a client of each server that takes writes: of one, but for a cluster. Raises
    StoreError.
    """
    nodes: Any = getattr(client, "map", None)
    with answering():
        return [client] if nodes is None else nodes.masters()


def check_settings(client: redis.Redis) -> None:
    """Reject a server that may lose acknowledged events (RELIABILITY 5).

    Raises UnsafeStoreError with every reason; StoreError for a server that cannot keep the state at
    all; StoreDownError if it does not answer.
    """
    nodes = masters(client)
    wrong = [fault for node in nodes for fault in _faults(node, alone=node is client)]
    if wrong:
        raise UnsafeStoreError(*dict.fromkeys(wrong))


def _faults(client: redis.Redis, *, alone: bool) -> list[str]:
    with answering():
        info: Any = client.info()
        config: Any = client.config_get(
            "appendonly", "appendfsync", "maxmemory-policy", "no-appendfsync-on-rewrite"
        )
    if info.get("role") == "slave":
        by_sentinels = hasattr(client.connection_pool, "service_name") or not alone
        raise (StoreDownError if by_sentinels else StoreError)(
            "the server is a replica, which takes no writes: name the master in redis_url, or the "
            "sentinels that know it: redis+sentinel://"
        )
    if alone and info.get("cluster_enabled"):
        raise StoreError("the server is a node of a cluster: write redis+cluster:// in redis_url")
    version = str(info.get("valkey_version") or info["redis_version"])
    wrong = []
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        wrong.append(f"version {version} is older than 7.0")
    for name, wanted in (
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("maxmemory-policy", "noeviction"),
        ("no-appendfsync-on-rewrite", "no"),
    ):
        if config.get(name) != wanted:
            wrong.append(f"{name} is {config.get(name)!r}: set it to {wanted!r}")
    return wrong
