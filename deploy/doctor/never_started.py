"""Detect a site that was never started: its missing parts are no failures."""

from __future__ import annotations

import os
from pathlib import Path

import redis

from deploy.doctor.runner import Begins
from deploy.local.embedded_redis import EmbeddedServer
from shared.config.settings import Settings
from shared.errors import StoreError
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.operations.worker_registry import WorkerRegistry


def not_begun(client: redis.Redis, settings: Settings, name: str, home: Path) -> frozenset[Begins]:
    """Return the parts of the site `name` that are missing because it was never started.

    Empty once an event was accepted or a file published, and if Redis does not answer, unless it is
    an embedded server without data.
    """
    server = EmbeddedServer(home)
    missing: set[Begins] = set()
    if settings.redis_url == server.url and not (home / "redis").exists():
        missing |= {"redis", "parts"}
    else:
        try:
            if _has_begun(client, name):
                return frozenset()
            if not WorkerRegistry(client).list():
                missing.add("parts")
        except StoreError:
            return frozenset()
    root = settings.sites[name].web_root
    if not root.exists() and _can_be_made(root):
        missing.add("web root")
    return frozenset(missing)


def _has_begun(client: redis.Redis, name: str) -> bool:
    keys = keys_of(name)
    with answering():
        return bool(client.exists(keys.inbox) or client.hget(keys.counters, "publishes"))


def _can_be_made(path: Path) -> bool:
    """Return True if this user may create the directory, as a worker does at its first publish."""
    above = next(parent for parent in path.parents if parent.exists())
    return above.is_dir() and os.access(above, os.W_OK | os.X_OK)
