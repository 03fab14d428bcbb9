"""Sees within seconds, though no event comes, that Redis and the web root do not belong together.

What it finds is recorded for webhook, console and metrics, which do not see the web root
(RELIABILITY F31), and taken back when it is cured.
"""

from __future__ import annotations

import secrets
import time
from contextlib import closing

import redis

from shared.config.site import Site
from shared.errors import PublishError
from shared.logs import logger
from shared.store.publishing.publish_state import PublishState
from worker.publishing.file_migration import FileMigration
from worker.publishing.ownership import belongs
from worker.publishing.quarantine import stop
from worker.publishing.web_root import WebRoot

LOOK_S = 4.0
"""Seconds between two looks: with the sweep's own pace a loss is known within 10 s."""

_log = logger("publisher")


class WebRootWatch:
    """Watches over one site."""

    def __init__(self, client: redis.Redis, name: str, site: Site, consumer: str) -> None:
        self._state, self._name, self._site = PublishState(client, name), name, site
        self._reshaper = FileMigration(client, name, site)
        self._token = f"{consumer}:{secrets.token_hex(8)}"
        self._due = 0.0

    def tick(self) -> None:
        """Look, if it is time. Raises StoreError."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + LOOK_S
            self.look()

    def look(self) -> None:
        """Compare the marker with the state; then what only changes with the settings."""
        stopped = self._state.quarantine.stopped()
        try:
            sound = self._sound()
        except PublishError as error:
            if stop(self._state.quarantine, error):
                _log.error("nothing is published", site=self._name, reason=str(error))
            return
        if stopped and (stopped.kind == "state" or not self._state.dirty(1)):
            self._state.quarantine.clear()
            _log.info("publishing goes on", site=self._name)
        if sound:
            self._follow_settings()

    def _sound(self) -> bool:
        """Whether the web root is there; ForeignStateError if its files are not of this state."""
        if not self._site.web_root.is_dir():
            return False
        with closing(WebRoot(self._site.web_root)) as root:
            belongs(root, self._state, self._name, self._site, self._state.known_run())
        return True

    def _follow_settings(self) -> None:
        if self._reshaper.due() and not self._renew():
            return
        if self._reshaper.waiting():
            with closing(WebRoot(self._site.web_root)) as root:
                try:
                    self._reshaper.remove_due(root)
                except PublishError as error:
                    _log.error("not removed", site=self._name, reason=str(error))

    def _renew(self) -> bool:
        """Do it while nobody publishes; False if somebody does."""
        if not self._state.take(self._token):
            return False
        try:
            self._reshaper.renew()
        finally:
            self._state.release(self._token)
        return True
