"""A pump that can be laid quiet and set to work again, and that counts what it has done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import redis

from shared.inbox import Received
from shared.settings import Settings
from shared.shards import Shard
from shared.store.redis import Errand
from worker.publisher import Published, Publisher
from worker.pump import Pump, now_ms

NOBODY = "given-back"
"""Holds, in each inbox, events that a quiet worker gave back. It has no heartbeat, so whoever works
takes them over like those of a dead worker.
"""


class TendedPump(Pump):
    """The pump of one site in a worker that people look after.

    Its counts are exact, for it runs in one thread at a time.
    """

    def __init__(
        self, settings: Settings, client: redis.Redis, name: str, consumer: str,
        now_ms: Callable[[], int] = now_ms, on_resync: Callable[[str], None] = lambda _site: None,
    ) -> None:  # fmt: skip
        super().__init__(settings, client, name, consumer, now_ms, on_resync)
        self.publisher = self._counted = _CountingPublisher(
            client, name, settings.sites[name], consumer
        )
        self.events = 0

    @property
    def files(self) -> int:
        """How many files it has written."""
        return self._counted.files

    def resume(self) -> None:
        """Let `run` work again, after `stop`."""
        self._stopping.clear()

    def give_back(self) -> int:
        """Leave what this worker holds, and has not settled, to the others; how many events.

        Once what is at hand is finished. Raises StoreError.
        """
        given = 0
        if self._consumer in self.inbox.holders():
            with self._running:
                while some := self.inbox.adopt(NOBODY, [self._consumer]):
                    given += some
        return given

    def _apply(self, batch: Sequence[Received], errand: Errand | None) -> None:
        super()._apply(batch, errand)
        self.events += len(batch)


class _CountingPublisher(Publisher):
    files = 0

    def publish(
        self, again: Sequence[Shard] = (), errand: Errand | None = None
    ) -> Published | None:
        done = super().publish(again, errand)
        self.files += len(done.written) if done else 0
        return done
