"""Change log of a site: which pages were published, changed and deleted, and when; bounded.

Kept only where outputs.change_list is on. Changes come from the lines of published files: what a
shrink hold keeps back is in the log when it is published, and not before.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import redis

from shared.sitemap.change_list import LoggedChange
from shared.store.client import Scripts, answering
from shared.store.keys import keys_of

Changes = tuple[int, list[LoggedChange]]
"""A time (s since 1970), and all changes that were published since, oldest first."""


class ChangeLog:
    """Change log of one site, of the newest `most` changes."""

    def __init__(self, client: redis.Redis, site: str, most: int) -> None:
        self._client, self._keys, self._most = client, keys_of(site), most
        self._scripts = Scripts(client)

    def append(self, new: Iterable[LoggedChange], *, unknown: bool = False) -> Changes:
        """Append the changes of a publish; return all. `unknown` if there are others: then all
        before the next publish are dropped.

        The caller holds the lease. A publish that is repeated after a crash appends its changes
        again, which readers of a change list may meet anyway. Raises StoreError.
        """
        packed = [each.pack() for each in new]
        keys = [self._keys.changes, self._keys.changes_since]
        since, stored = self._scripts(
            "publishing/change_log", keys, self._most, int(time.time()), int(unknown), *packed
        )
        return int(since), _read(stored)

    def read(self) -> Changes | None:
        """Return all changes; None if none was ever appended. Raises StoreError."""
        with answering():
            pipe = self._client.pipeline()
            pipe.get(self._keys.changes_since)
            pipe.lrange(self._keys.changes, 0, -1)
            since, stored = pipe.execute()
        return (int(since), _read(stored)) if since and since.isdigit() else None

    def forget(self) -> None:
        """Delete the log. Raises StoreError."""
        with answering():
            self._client.delete(self._keys.changes, self._keys.changes_since)


def _read(stored: Any) -> list[LoggedChange]:
    return [change for each in stored if (change := LoggedChange.unpack(each))]
