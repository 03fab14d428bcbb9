"""The sites of one worker process: the parts of each, rebuilt when the settings of the site change.

A removed site is finished first: what was accepted is published. The parts of a changed site share
the lock of those before them, so that each batch is applied and published under one configuration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import redis

from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.errors import StoreError
from shared.store.client import answering
from shared.store.counting import counter_buffer
from shared.store.operations.queues import EVENTS
from shared.store.operations.worker_registry import HEARTBEAT
from shared.store.publishing.publish_state import PublishState
from shared.telemetry.logs import logger
from worker.checks.file_monitor import FileMonitor
from worker.ingest.inbox_consumer import InboxConsumer
from worker.loops.heartbeat import WorkDone
from worker.loops.loop import Loop
from worker.publishing.followers.follow_service import followers_of
from worker.publishing.targets.web_root_watch import WebRootWatch
from worker.publishing.upkeep.section_archiving import SectionArchiver
from worker.publishing.upkeep.shard_compaction import drain_emptiest

LEAVE_S = 10.0
"""Seconds for which a removed site is worked on at least: webhooks may accept events for a moment
after the worker has read the new configuration.
"""
LONGEST_S = 600.0
"""Seconds after which a removed site is left although events wait, as while its queue is paused."""

_log = logger("worker")


class SiteWork(NamedTuple):
    """The parts that work on one site, under one configuration."""

    site: Site
    consumer: InboxConsumer
    state: PublishState
    checkers: list[FileMonitor]
    watch: WebRootWatch
    archiver: SectionArchiver
    partners: dict[str, Site]

    def of(self, name: str, settings: Settings) -> bool:
        """True if it works on the site `name` as `settings` have it."""
        return self.site == settings.sites[name] and self.partners == settings.partners(name)

    def due(self) -> bool:
        """True if its web root or its files are to be looked at now."""
        return self.watch.due() or any(each.due() for each in self.checkers)

    def tidy(self, loop: Loop, now_ms: Callable[[], int]) -> None:
        """Align shared groups, purge expired tombstones, archive old pages, and empty one nearly
        empty shard; a duty of `loop`.
        """
        pages = self.consumer.pages
        while pages.purge_tombstones(now_ms()) and not loop.stopping:
            loop.progress()
        self.consumer.expiry.groups.align(now_ms())
        if moved := self.archiver.run(now_ms(), loop.progress):
            _log.info("old pages archived", site=self.consumer.name, pages=moved)
        if (drained := drain_emptiest(pages, self.state)) is not None:
            name, shard = self.consumer.name, str(drained)
            _log.info("nearly empty shard compacted", site=name, shard=shard)

    def look(self) -> None:
        """Run the checks that are due. Raises StoreError, PublishError."""
        self.watch.tick()
        for each in self.checkers:
            each.tick()


class WorkedSites:
    """The sites of one worker, by name."""

    def __init__(
        self, client: redis.Redis, consumer: str, clock: Callable[[], float],
        on_resync: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._client, self._consumer, self._clock = client, consumer, clock
        self._on_resync = on_resync
        self.present: dict[str, SiteWork] = {}
        """The configured sites; replaced as a whole."""
        self.leaving: dict[str, SiteWork] = {}
        """Removed sites whose accepted events are still being published."""
        self._since: dict[str, float] = {}
        self._before = WorkDone(0, 0)
        self._linger = 0.0

    def prepare(self, settings: Settings) -> Callable[[], list[SiteWork]]:
        """Build the parts for `settings`. The returned function puts them in force, and returns
        those that were replaced, which finish their batch.
        """
        known = self.present | self.leaving
        same = settings.linger == self._linger
        built = {
            name: self.present[name]
            if same and name in self.present and self.present[name].of(name, settings)
            else self._build(settings, name, known.get(name))
            for name, site in settings.sites.items()
        }

        def put_in_force() -> list[SiteWork]:
            before, self._linger = self.present, settings.linger
            replaced = [work for name, work in known.items() if built.get(name, work) is not work]
            gone = {name: work for name, work in before.items() if name not in built}
            self._since |= dict.fromkeys(gone, time.monotonic())
            still = {name: work for name, work in self.leaving.items() if name not in built}
            self.present, self.leaving = built, still | gone
            for work in replaced:
                work.consumer.stop()
                self._count(work)
            return replaced

        return put_in_force

    def _build(self, settings: Settings, name: str, before: SiteWork | None) -> SiteWork:
        client, site, state = self._client, settings.sites[name], PublishState(self._client, name)
        consumer = InboxConsumer(
            settings, client, name, self._consumer, self._clock, self._on_resync,
            after=before.consumer if before else None,
        )  # fmt: skip
        watch = WebRootWatch(client, name, site, self._consumer)
        followers = followers_of(client, name, site, self._consumer)
        checkers = [FileMonitor(state, name, site, follower=each) for each in followers]
        checkers = checkers or [FileMonitor(state, name, site)]
        archiver = SectionArchiver(consumer.pages, state, site.routing)
        partners = settings.partners(name)
        if partners:
            with suppress(StoreError):  # a duty of tidy as well
                consumer.expiry.groups.align(round(self._clock() * 1000))
        return SiteWork(site, consumer, state, checkers, watch, archiver, partners)

    def share(self, consumer: InboxConsumer, most_s: float) -> None:
        """Tell the partners of a site of its translation groups, and publish what that changes, for
        up to `most_s` seconds each. Raises StoreError.
        """
        groups = consumer.expiry.groups
        if groups.shared:
            try:
                consumer.expire()
            finally:
                touched, groups.touched = groups.touched, set()
                for partner in filter(None, map(self.find, sorted(touched))):
                    partner.run(most_s)

    def find(self, name: str) -> InboxConsumer | None:
        """Return the consumer of a site, also of one that was removed and is being finished."""
        work = self.present.get(name) or self.leaving.get(name)
        return work.consumer if work else None

    @property
    def consumers(self) -> dict[str, InboxConsumer]:
        """The consumers of all sites, those being finished included."""
        return {name: work.consumer for name, work in (self.present | self.leaving).items()}

    def check(self, loop: Loop, first: int, most_s: float) -> int:
        """Look at the files of every site where that is due, for about `most_s` seconds, as duties
        of `loop`; begin at site number `first`, and return the number of the next one.
        """
        present, until, number = self.present, time.monotonic() + most_s, 0
        names = [*present]
        for number in range(first, first + len(names)):
            name = names[number % len(names)]
            work = present[name]
            # Not by parts that were replaced since the round began.
            if work.due() and loop.due(name) and self.present.get(name) is work:
                with loop.at(name):
                    work.look()
                if time.monotonic() > until:
                    break
        return (number + 1) % len(names) if names else 0

    @property
    def busy(self) -> bool:
        """True if a consumer is running."""
        works = chain(self.present.values(), self.leaving.values())
        return any(work.consumer.running for work in works)

    def stop(self) -> None:
        """Let the work on every site end after its current batch."""
        for consumer in self.consumers.values():
            consumer.stop()

    def resume(self) -> None:
        """Let every site be worked on again, after `stop`."""
        for consumer in self.consumers.values():
            consumer.resume()

    def give_back(self) -> None:
        """Give back the events of a quiet worker: it is alive, so others do not adopt them. Raises
        StoreError.
        """
        for name, consumer in self.consumers.items():
            if given := consumer.give_back():
                _log.warning("events given back", site=name, events=given)

    def adopt(self, consumer: InboxConsumer, late_s: float) -> None:
        """Adopt the events of dead workers, and count wake-ups that were lost `late_s` seconds ago.
        Raises StoreError.
        """
        if not consumer.inbox.waiting():
            return
        if _forgotten(consumer, late_s):
            counter_buffer.of(self._client).add(consumer.name, "wakeups_lost")
        holders = consumer.inbox.holders()
        if self._consumer in holders and not consumer.running:
            consumer.look_again()
        others = [name for name in holders if name != self._consumer]
        with answering():
            dead = [name for name in others if not self._client.exists(f"{HEARTBEAT}{name}")]
        taken = consumer.adopt(dead)
        if taken:
            counter_buffer.of(self._client).add(consumer.name, "adopted", taken)
            _log.warning("events of a dead worker adopted", site=consumer.name, events=taken)

    def finish(self) -> list[str]:
        """Leave the removed sites that have no work left; return their names. Raises StoreError."""
        return list(self._finish())

    def _finish(self) -> Iterator[str]:
        for name, work in list(self.leaving.items()):
            age, consumer = time.monotonic() - self._since[name], work.consumer
            if age < LEAVE_S or consumer.running:
                continue
            waiting = consumer.inbox.waiting()
            if (waiting or consumer.publisher.waiting(1)) and age < LONGEST_S:
                continue
            self.leaving = {other: each for other, each in self.leaving.items() if other != name}
            self._count(work)
            if waiting:
                _log.warning("removed site left with events", site=name, events=waiting)
            else:
                _log.info("removed site finished", site=name)
            yield name

    @property
    def done(self) -> WorkDone:
        """The work of this process for all sites since it started."""
        consumers = self.consumers.values()
        return WorkDone(
            self._before.events + sum(one.events for one in consumers),
            self._before.files + sum(one.files for one in consumers),
        )

    def _count(self, work: SiteWork) -> None:
        """Keep the counts of parts that are given up."""
        events, files = self._before
        self._before = WorkDone(events + work.consumer.events, files + work.consumer.files)


def _forgotten(consumer: InboxConsumer, since_s: float) -> bool:
    """Return True if events have waited `since_s` seconds unprocessed. Raises StoreError."""
    waiting = consumer.queues.waiting()
    if waiting.oldest_ms is None or waiting.in_flight or consumer.running:
        return False
    late = waiting.now_ms - waiting.oldest_ms > since_s * 1000
    return late and EVENTS not in consumer.queues.paused()
