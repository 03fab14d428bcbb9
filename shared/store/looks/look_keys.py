"""Names of the Redis keys of looks: all are written by the worker that has the turn of the host."""

from __future__ import annotations

from functools import lru_cache

from shared.store.keys import EVERYWHERE, keys_of

LOOKING = EVERYWHERE + "looking:"
"""Prefix of a string with a TTL: the right to send a request to the host whose name follows."""
ROBOTS = EVERYWHERE + "robots:"
"""Prefix of a string with a TTL: robots.txt of the host whose name follows."""


class LookKeys:
    """Key names of the looks at one site."""

    def __init__(self, site: str) -> None:
        prefix = keys_of(site).prefix
        self._pages = f"{prefix}looks:page:"
        self.state = f"{prefix}looks"
        """Hash: LookState."""
        self.due = f"{prefix}looks:due"
        """Zset: loc -> place in the order in which pages are looked at, the highest first."""
        self.again = f"{prefix}looks:again"
        """Zset: loc of a broken page -> when it is looked at again (ms)."""
        self.broken = f"{prefix}looks:broken"
        """Hash: loc -> BrokenPage."""
        self.unlisted = f"{prefix}looks:unlisted"
        """Hash: loc -> UnlistedPage."""

    def records(self, bucket: int) -> str:
        """Hash: field of a digest -> LookRecord."""
        return f"{self._pages}{bucket:x}"


look_keys_of = lru_cache(16_384)(LookKeys)
"""Return the key names of the looks at a site, made once."""
