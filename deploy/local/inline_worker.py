"""Drain the inbox within a command, unless a worker does."""

from __future__ import annotations

import os
import time

import redis

from deploy.cli.output import CommandTarget
from shared.errors import StoreError
from shared.store.client import answering
from shared.store.inbox.inbox import Inbox
from shared.store.operations import worker_registry
from worker.ingest.inbox_consumer import InboxConsumer

STILL_S = 60.0
"""Seconds without any progress, besides the publish interval of the site, after which a command no
longer waits for the workers.
"""


class InlineWorker:
    """Applies events that a command has put into the inbox: waits for running workers, or acts as
    one if there is none.
    """

    def __init__(self, client: redis.Redis, place: CommandTarget) -> None:
        self._client = client
        self._inbox, self._site = Inbox(client, place.name), place.name
        self._known = worker_registry.WorkerRegistry(client)
        self._name, self._interval = f"cli-{os.getpid()}", place.site.publish_interval
        self._pump = InboxConsumer(place.settings, client, place.name, self._name)

    def drain(self) -> None:
        """Apply and publish the backlog, or wait 0.02 s for a worker. Raises StoreError."""
        if self._others():
            time.sleep(0.02)
        else:
            self._pump.apply_all()
            self._pump.run()

    def finish(self) -> None:
        """Return once all events are applied and published. Raises StoreError; also if nothing of
        it happens for STILL_S: processing is paused, or a worker cannot go on.
        """
        still_s = STILL_S + self._interval
        look_at, since = 0.0, time.monotonic()
        left: object = None
        while self._inbox.waiting() or self._pump.publisher.waiting(1):
            if not self._others():
                self._pump.adopt(self._abandoned())
                self._pump.run()
            time.sleep(0.02)
            now = time.monotonic()
            if now >= look_at:
                before, left = left, (self._inbox.waiting(), self._pump.publisher.waiting())
                look_at, since = now + 1, since if left == before else now
            if now - since > still_s:
                raise StoreError(
                    f"all events are sent, and for {still_s:.0f} s none was applied or published: "
                    f"sitemapd status --site {self._site} says why"
                )
        self._inbox.leave(self._name)

    def _others(self) -> bool:
        """Return True if another worker works on the site; a quiet worker does not count."""
        return any(worker.works_on(self._site) for worker in self._known.list())

    def _abandoned(self) -> list[str]:
        """Return the consumers whose heartbeat has ended, and whose events no worker will apply.

        Quiet workers have returned theirs.
        """
        others = [name for name in self._inbox.holders() if name != self._name]
        with answering():
            return [
                name
                for name in others
                if not self._client.exists(f"{worker_registry.HEARTBEAT}{name}")
            ]
