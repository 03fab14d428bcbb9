"""Expiry schedule of a site: which entries are due for examination, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import redis

from shared.store.client import answering
from shared.store.keys import keys_of


class ExpirySchedule:
    """Times at which news and videos leave, or scheduled news appears."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)

    def due(self, now_ms: int, most: int = 200) -> list[bytes]:
        """Return up to `most` entries due at `now_ms` (ms since 1970). Raises StoreError."""
        with answering():
            found: Any = self._client.zrangebyscore(self._keys.expiry, "-inf", now_ms, 0, most)
        return list(found)

    def set(self, entries: Mapping[Any, int]) -> None:
        """Schedule entries at these times (ms since 1970), whatever was scheduled. Raises
        StoreError.
        """
        if entries:
            with answering():
                self._client.zadd(self._keys.expiry, entries)
