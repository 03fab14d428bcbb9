"""Report of the last reading of access logs, for the console."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import redis

from shared.store.client import answering
from shared.store.keys import keys_of

KEPT_S = 90 * 24 * 3600


def save(client: redis.Redis, site: str, report: Mapping[str, Any]) -> None:
    """Replace the stored report by `report`, without its rows per shard: a site may have
    thousands.
    """
    engines = [
        {name: value for name, value in engine.items() if name != "shards"}
        for engine in report["engines"]
    ]
    with answering():
        client.set(keys_of(site).crawl, json.dumps({**report, "engines": engines}), ex=KEPT_S)


def load(client: redis.Redis, site: str) -> dict[str, Any] | None:
    """Return the stored report; None if it is older than 90 days, or there is none."""
    with answering():
        stored: Any = client.get(keys_of(site).crawl)
    return None if stored is None else dict(json.loads(stored))
