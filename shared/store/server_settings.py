"""The check that a server loses no acknowledged event by its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.errors import StoreDownError, StoreError, UnsafeStoreError
from shared.store.client import answering

OLDEST = (7, 0)


class ServerVersion(NamedTuple):
    """Program and version of a server: `valkey`, `9.0.1`."""

    program: str
    version: str

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> ServerVersion:
        """Return what the section `server` of INFO says. Valkey calls itself Redis 7.2 besides."""
        valkey = info.get("valkey_version")
        return cls("valkey", str(valkey)) if valkey else cls("redis", str(info["redis_version"]))

    def since(self, *oldest: int) -> bool:
        """Return True if the version is at least `oldest`."""
        return tuple(int(part) for part in self.version.split(".")[: len(oldest)]) >= oldest

    def __str__(self) -> str:
        return f"{self.program} {self.version}"


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
    server, wrong = ServerVersion.of(info), []
    if not server.since(*OLDEST):
        wrong.append(f"version {server.version} is older than 7.0")
    for name, wanted in (
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("maxmemory-policy", "noeviction"),
        ("no-appendfsync-on-rewrite", "no"),
    ):
        if config.get(name) != wanted:
            wrong.append(f"{name} is {config.get(name)!r}: set it to {wanted!r}")
    return wrong
