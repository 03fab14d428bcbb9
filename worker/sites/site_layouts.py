"""Migration of the sites of a worker to the current layout, before it first works on them.

Always, and without an option: whoever installs a version wants it to work, and needs to know of no
layout. A site that an administrator moved back stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import redis

from shared.errors import StoreDownError, StoreError
from shared.store.layouts.migration import Migration, layouts, move_shared
from shared.store.layouts.version import OLDEST, Layout
from shared.telemetry.logs import logger
from worker.loops.loop import Loop

LOOK_S = 60.0
"""Seconds after which a site is looked at again: a command may have been killed on the way."""

_log = logger("layouts")


class SiteLayouts:
    """Keeper of the layouts of the sites of one worker."""

    def __init__(self, client: redis.Redis, consumer: str, loop: Loop) -> None:
        """A failed migration is retried, and reported, as a duty of `loop`."""
        self._client, self._consumer, self._loop = client, consumer, loop
        self._current, self._until = set[str](), 0.0

    def bring_up(self, sites: Iterable[str]) -> None:
        """Migrate those of `sites` that were not current when last looked at. Raises StoreError."""
        if time.monotonic() > self._until:
            self._current.clear()
            self._until = time.monotonic() + LOOK_S
        new = [name for name in sites if name not in self._current]
        try:
            found = layouts(self._client, new)
        except StoreDownError:
            raise
        except StoreError:  # one of them is damaged: each is looked at by itself
            found = dict.fromkeys(new, Layout(OLDEST))
        for name, layout in found.items():
            if layout.current:
                self._current.add(name)
            elif layout.older and not layout.stays and self._loop.due(name, "layout"):
                with self._loop.at(name, "layout"):
                    self._migrate(name)

    def _migrate(self, name: str) -> None:
        migration = Migration(self._client, name, self._consumer)
        before = migration.layout()
        if before.current or before.stays:
            return
        moved = migration.run(lambda _: self._loop.progress())
        now = migration.layout()
        move_shared(self._client, {name: now})
        _log.info("site migrated", site=name, layout=str(before), to=str(now), keys=moved)
