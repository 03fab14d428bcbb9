"""Full batches of a backlog: each is decided while Redis applies the one before.

A batch is decided on records that are read before the previous batch is applied. Where both concern
the same page, id or group, it is read and decided anew afterwards, and so is a batch whose records
other workers change meanwhile: apply.lua compares them. Batches are applied in their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from shared.errors import NotNowError
from shared.store.client import PipelinedScript, RunningScript
from shared.store.inbox.inbox import Inbox, InboxEntry
from shared.store.pages.changes import ReadBatch
from worker.ingest.event_processor import DecidedBatch, Entries, EventProcessor

AHEAD = 2
"""Batches that are read before they are decided: one is loaded while another is decided."""


class _Step(NamedTuple):
    """Loaded entries; `work` is None if they are to be processed by themselves."""

    entries: Entries
    work: DecidedBatch | None


class Backlog:
    """Processes the batches of one inbox of which each is full. Not thread-safe.

    `last` is the batch that was read last, `paused` are the queues that were paused then, `whole`
    is False once events failed.
    """

    def __init__(self, inbox: Inbox, processor: EventProcessor, consumer: str, most: int) -> None:
        self._inbox, self._processor = inbox, processor
        self._consumer, self._most = consumer, most
        self._read, self._loaded = deque[Sequence[InboxEntry]](), deque[Entries]()
        self.last: Sequence[InboxEntry] = ()
        self.paused: Container[str] = ()
        self.whole = True

    def run(
        self, first: Sequence[InboxEntry], more: Callable[[], bool],
        begin: Callable[[], PipelinedScript | None],
    ) -> PipelinedScript | None:  # fmt: skip
        """Process `first`, and what follows while there is `more` to be read and batches are full.

        What `begin` returns runs in the round trip of the last batch. Raises StoreError: events
        that were read and not processed stay with the consumer.
        """
        self.last, self.whole = first, True
        self._read, self._loaded = deque([first]), deque()
        while len(self._read) <= AHEAD and self._full(more):
            self._keep(self._inbox.reading(self._consumer, self._most))
        entries = self._next()
        step = _Step(entries, self._decided(entries, self._records(entries)))
        while True:
            following = self._next()
            reading = self._inbox.reading(self._consumer, self._most) if self._full(more) else None
            ends = not (following or reading or self._read or self._loaded)
            script = begin() if ends else None
            work = self._advance(step, following, [each for each in (reading, script) if each])
            if reading:
                self._keep(reading)
            if ends:
                return script
            step = _Step(following, work)

    def _advance(
        self, step: _Step, following: Entries, scripts: Sequence[PipelinedScript]
    ) -> DecidedBatch | None:
        """Apply `step` with `scripts` in its round trip; return what is decided of `following`."""
        work = None
        read = self._records(following) if step.work else None
        if read and step.work and _share(read, step.work.read):
            read = None
        running = step.work and self._processor.start(step.work, scripts)
        try:
            if read:
                work = self._decided(following, read)
            if self._read:
                self._loaded.append(self._load(self._read.popleft()))
        except BaseException:
            if running:
                running.abandon()
            raise
        if not (step.work and running and self._applied(step.work, running)):
            script = next((each for each in scripts if not each.done), None)
            self.whole &= self._processor.process_loaded(step.entries, script)
        return work if read else self._decided(following, self._records(following))

    def _applied(self, work: DecidedBatch, running: RunningScript) -> bool:
        try:
            return self._processor.finish(work, running)
        except NotNowError:
            raise
        except Exception:  # noqa: BLE001  # the events are processed by themselves, which logs it
            return False

    def _full(self, more: Callable[[], bool]) -> bool:
        return len(self.last) == self._most and more()

    def _keep(self, reading: PipelinedScript) -> None:
        self.last, self.paused = self._inbox.found(reading)
        if self.last:
            self._read.append(self.last)

    def _next(self) -> Entries:
        if not self._loaded and self._read:
            self._loaded.append(self._load(self._read.popleft()))
        return self._loaded.popleft() if self._loaded else []

    def _load(self, batch: Sequence[InboxEntry]) -> Entries:
        entries, whole = self._processor.load(batch)
        self.whole &= whole
        return entries

    def _records(self, entries: Entries) -> ReadBatch | None:
        try:
            return self._processor.read(entries) if entries else None
        except NotNowError:
            raise
        except Exception:  # noqa: BLE001  # as in _applied
            return None

    def _decided(self, entries: Entries, read: ReadBatch | None) -> DecidedBatch | None:
        try:
            return self._processor.decide(entries, read) if read else None
        except NotNowError:
            raise
        except Exception:  # noqa: BLE001  # as in _applied
            return None


def _share(one: ReadBatch, other: ReadBatch) -> bool:
    return not (
        one.pages.keys().isdisjoint(other.pages)
        and one.claims.keys().isdisjoint(other.claims)
        and one.groups.keys().isdisjoint(other.groups)
    )
