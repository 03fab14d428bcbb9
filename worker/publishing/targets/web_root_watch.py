"""Detect within seconds, without an event, that Redis and the web root do not belong together.

The finding is recorded for webhook, console and metrics, which do not see the web root (RELIABILITY
F31), and cleared when the cause is gone.
"""

from __future__ import annotations

import secrets
import time
from contextlib import closing

import redis

from shared.config.sites.site import Site
from shared.errors import PublishError
from shared.store.publishing.publish_batch import PublishLease
from shared.store.publishing.publish_state import PublishState
from shared.telemetry.logs import logger
from worker.publishing.file_migration import FileMigration
from worker.publishing.quarantine import stop
from worker.publishing.targets.ownership import belongs
from worker.publishing.targets.registry import open_own, stands

LOOK_S = 4.0
"""Seconds between two checks: with the sweep interval, a loss is detected within 10 s."""

_log = logger("publisher")


class WebRootWatch:
    """Watches the web root of one site."""

    def __init__(self, client: redis.Redis, name: str, site: Site, consumer: str) -> None:
        self._state, self._name, self._site = PublishState(client, name), name, site
        self._lease, self._migration = PublishLease(client, name), FileMigration(client, name, site)
        self._token = f"{consumer}:{secrets.token_hex(8)}"
        self._due = 0.0

    def due(self) -> bool:
        """True if `tick` would look."""
        return time.monotonic() >= self._due

    def tick(self) -> None:
        """Run `look` if it is due. Raises StoreError, PublishError."""
        if self.due():
            self._due = time.monotonic() + LOOK_S
            self.look()

    def look(self) -> None:
        """Compare the run marker with the state, then migrate files to changed settings.

        Raises StoreError, and PublishError if the web root cannot be opened for the migration.
        """
        stopped = self._state.quarantine.stopped()
        try:
            sound = self._sound()
        except PublishError as error:
            if stop(self._state.quarantine, error):
                _log.error("publishing stopped", site=self._name, reason=str(error))
            return
        if stopped and (stopped.kind == "state" or not self._state.dirty(1)):
            self._state.quarantine.clear()
            _log.info("publishing resumed", site=self._name)
        if sound:
            self._follow_settings()

    def _sound(self) -> bool:
        """Return True if the web root exists; ForeignStateError if its files are not of this
        state.
        """
        if not stands(self._site):
            return False
        with closing(open_own(self._site)) as root:
            belongs(root, self._state, self._name, self._site)
        return True

    def _follow_settings(self) -> None:
        if self._migration.due() and not self._renew():
            return
        if self._migration.waiting():
            with closing(open_own(self._site)) as root:
                try:
                    self._migration.remove_due(root)
                except PublishError as error:
                    _log.error("file not removed", site=self._name, reason=str(error))

    def _renew(self) -> bool:
        """Mark files for publishing under the lease; False if another publisher holds it."""
        if not self._lease.take(self._token):
            return False
        try:
            self._migration.renew()
        finally:
            self._lease.release(self._token)
        return True
