"""Settings by which a site's files were written, and retired files of earlier settings.

The publisher compares the settings at its start: files written by others are written again, and
files that no index lists any more are removed when they are due. No other file is recorded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import redis

from shared.store.client import answering
from shared.store.keys import keys_of


class FileShapes:
    """File shape of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)

    def read(self) -> dict[str, str]:
        """Return the settings by which the files were written; empty if never recorded."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.shape)
        return {name.decode(): value.decode(errors="replace") for name, value in stored.items()}

    def record(self, shape: Mapping[str, str]) -> None:
        """Record the settings by which the files are written from now on."""
        with answering():
            self._client.hset(self._keys.shape, items=[*chain(*shape.items())])

    def retire(self, names: Iterable[str], due: float) -> None:
        """Schedule files that no index lists any more for removal at `due` (s since 1970)."""
        marks = dict.fromkeys(names, due)
        if marks:
            with answering():
                self._client.zadd(self._keys.retired, marks)

    def retired(self) -> dict[str, float]:
        """Return every file scheduled for removal, and when (s since 1970)."""
        with answering():
            found: Any = self._client.zrange(self._keys.retired, 0, -1, withscores=True)
        return {name.decode(errors="replace"): due for name, due in found}

    def keep(self, names: Iterable[str]) -> None:
        """Cancel the removal of these files: they are gone, or listed again."""
        found = list(names)
        if found:
            with answering():
                self._client.zrem(self._keys.retired, *found)
