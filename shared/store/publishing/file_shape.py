"""The settings by which a site's files were written, and the files of earlier ones.

The publisher compares them at its start: what it wrote by others is written anew, and the files
that no index names any more go when their time has come. No other file is ever recorded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import redis

from shared.store.client import answering
from shared.store.keys import Keys


class FileShapes:
    """The shape of one site's files."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, Keys(site)

    def read(self) -> dict[str, str]:
        """The settings by which the files were written; none if that was never recorded."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.shape)
        return {name.decode(): value.decode(errors="replace") for name, value in stored.items()}

    def record(self, shape: Mapping[str, str]) -> None:
        """The files are written by these settings from now on."""
        with answering():
            self._client.hset(self._keys.shape, items=[*chain(*shape.items())])

    def retire(self, names: Iterable[str], due: float) -> None:
        """Have these files removed at `due` (s since 1970): no index names them any more."""
        marks = dict.fromkeys(names, due)
        if marks:
            with answering():
                self._client.zadd(self._keys.retired, marks)

    def retired(self) -> dict[str, float]:
        """Every file that is to go, and when (s since 1970)."""
        with answering():
            found: Any = self._client.zrange(self._keys.retired, 0, -1, withscores=True)
        return {name.decode(errors="replace"): due for name, due in found}

    def keep(self, names: Iterable[str]) -> None:
        """These files are gone, or named again: forget that they were to go."""
        found = list(names)
        if found:
            with answering():
                self._client.zrem(self._keys.retired, *found)
