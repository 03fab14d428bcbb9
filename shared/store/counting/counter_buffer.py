"""Counts of a process that are not stored yet: counting costs no round trip of its own.

They are stored every few seconds; a killed process loses the counts since then, never an event.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter

import redis

from shared.store.client import answering
from shared.store.keys import EVERYWHERE, keys_of

OF_NO_SITE = EVERYWHERE + "counts"
"""Hash of the counters that belong to no site."""

_tallies: weakref.WeakKeyDictionary[redis.Redis, CounterBuffer] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class CounterBuffer:
    """Counts by site and name, to be added to the hash `stats` of the site."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, site: str, name: str, number: int = 1) -> None:
        """Add `number` to the counter `name` of `site`; an empty `site` stands for no site."""
        if number:
            with self._lock:
                self._counts[site, name] += number

    def flush(self, client: redis.Redis) -> None:
        """Store the buffered counts. On StoreError they are kept for the next flush.

        Counts that Redis stored without its reply arriving are then counted twice.
        """
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            with answering():
                pipe = client.pipeline()
                for (site, name), number in counts.items():
                    pipe.hincrby(keys_of(site).stats if site else OF_NO_SITE, name, number)
                pipe.execute()
        except BaseException:
            with self._lock:
                self._counts.update(counts)
            raise


def of(client: redis.Redis) -> CounterBuffer:
    """Return the counter buffer shared by all users of `client`."""
    with _lock:
        return _tallies.setdefault(client, CounterBuffer())
