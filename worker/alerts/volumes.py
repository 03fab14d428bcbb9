"""Volumes of the web roots and of Redis, and how full they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from shared.alerts.conditions import VolumeUse
from shared.store.client import answering


def of_directory(path: Path) -> VolumeUse | None:
    """Return the volume that holds `path`: its space or its inodes, whichever is scarcer.

    None if the path cannot be looked at: what is published there says so itself.
    """
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    space = _share(found.f_blocks - found.f_bfree, found.f_bavail)
    inodes = _share(found.f_files - found.f_ffree, found.f_favail)
    return VolumeUse(str(path) if space >= inodes else f"inodes of {path}", max(space, inodes))


def of_redis(client: redis.Redis) -> Iterator[VolumeUse]:
    """Yield the memory of Redis if it is limited, and its disk if it cannot be written."""
    with answering():
        pipe = client.pipeline(transaction=False)
        pipe.info("memory")
        pipe.info("persistence")
        memory, persistence = pipe.execute()
    if limit := int(_number(memory, "maxmemory")):
        yield VolumeUse("memory of Redis", _number(memory, "used_memory") / limit)
    written = ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")
    if any(persistence.get(name, "ok") != "ok" for name in written):
        yield VolumeUse("disk of Redis, which cannot write its log", 1.0)


def _share(used: int, free: int) -> float:
    """Return the used share as df shows it; 0 for a volume that counts nothing."""
    return used / (used + free) if used + free > 0 else 0.0


def _number(info: Any, name: str) -> float:
    return float(info.get(name, 0))
