"""The right to send one request to a host: one key for all workers, all sites of the host, and the
rest after each request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

from shared.store.client import answering
from shared.store.leases import Lease
from shared.store.looks.look_keys import LOOKING, ROBOTS

ROBOTS_S = 3_600


class LookTurn:
    """One turn at a host; `rest_s` are the seconds for which nobody may ask it afterwards."""

    def __init__(self) -> None:
        self.rest_s = 0.0


@contextmanager
def look_turn(client: redis.Redis, host: str, owner: str) -> Iterator[LookTurn | None]:
    """Hold the turn of `host` for the block; None if another one looks, or the host rests."""
    lease = Lease(client, LOOKING + host, owner)
    if not lease.take():
        yield None
        return
    turn = LookTurn()
    try:
        yield turn
    finally:
        if turn.rest_s > 0:
            lease.extend(max(1, round(turn.rest_s * 1000)))
        else:
            lease.release()


class RobotsStore:
    """robots.txt of one host, kept for ROBOTS_S seconds for all workers."""

    def __init__(self, client: redis.Redis, host: str) -> None:
        self._client, self._key = client, ROBOTS + host

    def get(self) -> bytes | None:
        """Return the content that was fetched last; None if that was too long ago."""
        with answering():
            found: Any = self._client.get(self._key)
        return None if found is None else bytes(found)

    def set(self, content: bytes) -> None:
        """Store what was fetched; empty: there is none."""
        with answering():
            self._client.set(self._key, content, ex=ROBOTS_S)
