"""A site whose news and videos expire by a clock of the test's own."""

from __future__ import annotations

from typing import Any

from tests.integration.rig import Rig
from worker.ingest.inbox_consumer import InboxConsumer


class Clock:
    """The time that a test says it is, `ms` since 1970; called, in seconds."""

    def __init__(self, ms: int) -> None:
        self.ms = ms

    def __call__(self) -> float:
        return self.ms / 1000


class Clocked(Rig):
    """One site under `clock`."""

    def __init__(self, clock: Clock, *arguments: Any, **options: Any) -> None:
        self.clock = clock
        super().__init__(*arguments, **options)

    def pump(self, consumer: str = "w1") -> InboxConsumer:
        return InboxConsumer(self.settings, self.client, self.name, consumer, self.clock)
