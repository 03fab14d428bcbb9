"""The check that a server loses no acknowledged event by its settings."""

from __future__ import annotations

from typing import Any

import redis

from shared.errors import UnsafeStoreError
from shared.store.client import answering

OLDEST = (7, 0)


def check_settings(client: redis.Redis) -> None:
    """Reject a server that may lose acknowledged events (RELIABILITY 5).

    Raises UnsafeStoreError with every reason; StoreDownError if the server does not answer.
    """
    with answering():
        info: Any = client.info("server")
        config: Any = client.config_get(
            "appendonly", "appendfsync", "maxmemory-policy", "no-appendfsync-on-rewrite"
        )
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
    if wrong:
        raise UnsafeStoreError(*wrong)
