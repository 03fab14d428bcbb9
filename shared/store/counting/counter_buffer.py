"""What a process has counted and not stored yet: counting costs no round trip of its own.

Stored every few seconds; what a kill takes away are the counts since then, never an event.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter

import redis

from shared.store.client import answering
from shared.store.keys import EVERYWHERE, Keys

OF_NO_SITE = EVERYWHERE + "counts"
"""The hash of what belongs to no site."""

_tallies: weakref.WeakKeyDictionary[redis.Redis, CounterBuffer] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class CounterBuffer:
    """Counts by site and name, on their way to the hash `stats` of the site."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, site: str, name: str, number: int = 1) -> None:
        """Count `number` more of `name`, for `site` or, if that is empty, for none."""
        if number:
            with self._lock:
                self._counts[site, name] += number

    def flush(self, client: redis.Redis) -> None:
        """Store what was counted. StoreError: it is kept for the next time.

        What Redis took without its answer coming back is counted twice then.
        """
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            with answering():
                pipe = client.pipeline()
                for (site, name), number in counts.items():
                    pipe.hincrby(Keys(site).stats if site else OF_NO_SITE, name, number)
                pipe.execute()
        except BaseException:
            with self._lock:
                self._counts.update(counts)
            raise


def of(client: redis.Redis) -> CounterBuffer:
    """The tally of all that count for the Redis of `client`."""
    with _lock:
        return _tallies.setdefault(client, CounterBuffer())
