"""Drain the inbox of one site: read, process, publish, until nothing is left.

The first change is published at once. Under load a publish pass follows once per publish interval,
and events that arrive in between are drained every `linger` seconds.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Container, Sequence

import redis

from shared.config.settings import Settings
from shared.errors import PublishError, StoreError
from shared.store.client import PipelinedScript
from shared.store.counting import counter_buffer
from shared.store.inbox.inbox import Inbox, InboxEntry
from shared.store.operations.queues import EVENTS, PUBLISH, Queues
from shared.telemetry import tracing
from shared.telemetry.logs import logger
from shared.telemetry.tracing import Trail
from worker.ingest.backlog import Backlog
from worker.ingest.event_processor import EventProcessor
from worker.ingest.expiry_processor import ExpiryProcessor
from worker.publishing.publisher import Publisher
from worker.publishing.quarantine import cause_of

BATCH = 500
MOST_AHEAD_S = 2.0
"""Seconds by which files may be dated ahead of the clock before publishing waits: of this many
passes over many shards each follows the one before at once.
"""
AWAKE_EVERY_S = 2.0
TURN_LOST_S = 5.0
"""Seconds after which a turn that was asked for counts as lost."""
NOBODY = "given-back"
"""Consumer that holds, in each inbox, the events that a quiet worker gave back. It has no
heartbeat, so that working workers adopt them like those of a dead worker.
"""

_log = logger("ingest")


class InboxConsumer:
    """Moves the events of one site from its inbox into its files."""

    def __init__(
        self, settings: Settings, client: redis.Redis, name: str, consumer: str,
        clock: Callable[[], float] = time.time,
        on_resync: Callable[[str], None] = lambda _site: None,
        most_ahead_s: float = MOST_AHEAD_S, after: InboxConsumer | None = None,
    ) -> None:  # fmt: skip
        """Create a consumer; `clock` is that of news and video expiry (seconds since 1970).

        Publishing waits while files are dated more than `most_ahead_s` seconds ahead of the clock.
        `on_resync` is called with the name of the site when a resync request was recorded; it must
        not raise. `after` is the consumer of the same site that this one replaces: both never run
        at once.
        """
        site = settings.sites[name]
        self.name = name
        self.inbox = Inbox(client, name)
        self._trail = Trail(name)
        self._processor = EventProcessor(
            client, name, site, consumer, self._trail, clock, on_resync
        )
        self._backlog = Backlog(self.inbox, self._processor, consumer, BATCH)
        self.pages = self._processor.pages
        self.expiry = ExpiryProcessor(client, name, site, self.pages, clock)
        self.files = 0
        self.publisher = Publisher(client, name, site, consumer)
        self._site, self._consumer, self._linger = site, consumer, settings.linger
        self._running: threading.Lock = after._running if after else threading.Lock()
        self._stopping = threading.Event()
        self.queues, self._tally = Queues(client, name), counter_buffer.of(client)
        self._paused: Container[str] = ()
        self._publish_at = self._awake_at = self._turn_ended = -math.inf
        self._most_ahead_s = most_ahead_s
        self._left = True

    def run(self, most_s: float = math.inf, *, again: bool = False) -> bool:
        """Work until nothing is left; return at once if this process is already running it.

        Stops after `most_s` seconds and returns True then: there is more to do, which the caller
        has run `again`, or the next event does. Raises StoreError; unfinished work stays in the
        store, where the sweep finds it.
        """
        if not self._running.acquire(blocking=False):
            return False
        asleep, more, until = False, False, time.monotonic() + most_s
        if self._turn_ended == -math.inf:
            # Accepting an event has just marked the site awake; once more would cost a flush.
            self._awake_at = time.monotonic()
        self._turn_ended = -math.inf
        try:
            if self._left:
                self._read_again()
            asleep = self._drain(until)
            more = not asleep and time.monotonic() >= until
        except PublishError as error:
            self._tally.add(self.name, f"publish_failed:{cause_of(error)}")
            _log.error("publish failed", site=self.name, reason=str(error))
            return False
        except BaseException:
            self._left = True
            raise
        finally:
            self._running.release()
            # Events that failed are for the sweep: turns would have them fail again at once.
            more = more and not (again and self._left)
            if again and more:
                self._turn_ended = time.monotonic()
            elif not asleep:
                self._give_up()
        return more

    def awaits_turn(self) -> bool:
        """True if a turn has just ended, and the next one is asked for."""
        return time.monotonic() < self._turn_ended + TURN_LOST_S

    @property
    def running(self) -> bool:
        """True while `run` is at work."""
        return self._running.locked()

    def await_end(self, seconds: float) -> None:
        """Wait up to `seconds` until no `run` is at work."""
        if self._running.acquire(timeout=seconds):
            self._running.release()

    def stop(self) -> None:
        """Let `run` return after the current batch."""
        self._stopping.set()

    def resume(self) -> None:
        """Let `run` work again, after `stop`."""
        self._stopping.clear()

    def give_back(self) -> int:
        """Give the unprocessed events of this worker to the others; return their number.

        Waits until the current `run` has ended. Raises StoreError.
        """
        given = 0
        if self._consumer in self.inbox.holders():
            with self._running:
                while some := self.inbox.adopt(NOBODY, [self._consumer]):
                    given += some
        return given

    def adopt(self, dead: Sequence[str]) -> int:
        """Adopt the events of the consumers `dead`, which `run` processes; return their number.

        Raises StoreError.
        """
        taken = self.inbox.adopt(self._consumer, dead)
        if taken:
            self.look_again()
        return taken

    def look_again(self) -> None:
        """Let the next `run` process the events this consumer already holds."""
        self._left = True

    def apply_all(self) -> None:
        """Apply every waiting event and publish nothing. Raises StoreError."""
        with self._running:
            while batch := self.inbox.read(self._consumer, BATCH):
                self._process(batch)

    def _read_again(self) -> None:
        """Process the events this consumer holds: adopted, failed, or left from before a
        restart.
        """
        if EVENTS in self.queues.paused():
            return
        self._left, after = False, "0"
        while batch := self.inbox.read(self._consumer, BATCH, after):
            self._process(batch)
            after = batch[-1].id

    def _drain(self, until: float) -> bool:
        """Read, apply and publish; return True if the site was marked idle."""
        looked_again = begun = False
        # A turn is at least one step, however late its thread got the processor.
        while not self._stopping.is_set() and not (begun and time.monotonic() >= until):
            begun = True
            self._stay_awake()
            read, self._paused = self.inbox.read_new(self._consumer, BATCH)
            looked_again = looked_again and not read
            begin, batch = self._work_on(read, until) if read else (None, read)
            due = self._due()
            published = due <= 0 and self._publish(begin)
            # Mostly nothing has arrived meanwhile: one round trip instead of three.
            if due <= 0 and len(batch) < BATCH and (batch or published) and self._rest():
                return True
            if published:
                continue
            if due <= 0 or (not batch and (due == math.inf or not self.publisher.waiting(1))):
                if batch:
                    continue
                if self._rest():
                    return True
                if looked_again:
                    # Only the sweep can help: a publish that is held up, or events that fail.
                    return False
                looked_again = True
            elif len(batch) < BATCH:
                self._stopping.wait(min(due, self._linger))
        return False

    def _work_on(
        self, batch: Sequence[InboxEntry], until: float
    ) -> tuple[PipelinedScript | None, Sequence[InboxEntry]]:
        """Process `batch`, and full ones those after it until a publish pass is due; return the
        script that begins this, and the batch read last.
        """
        # The publish pass begins in the round trip of the last batch before it.
        if len(batch) < BATCH or self._due() <= 0 or tracing.active:
            begins = self.publisher.begin() if self._due() <= 0 else None
            self._process(batch, begins)
            return begins, batch

        def more() -> bool:
            self._stay_awake()
            self._paused, now = self._backlog.paused, time.monotonic()
            return not self._stopping.is_set() and now < until and self._due() > 0

        def begin() -> PipelinedScript | None:
            return self.publisher.begin() if self._due() <= 0 else None

        self._backlog.paused = self._paused
        begins = self._backlog.run(batch, more, begin)
        self._paused = self._backlog.paused
        if not self._backlog.whole:
            self._left = True
        return begins, self._backlog.last

    def _rest(self) -> bool:
        """Mark the site as idle; False if there is work."""
        idle = self.inbox.rest()
        if idle and tracing.active:
            self._trail.end()
        return idle

    def _give_up(self) -> None:
        """Let the next event send a wake-up, although work is left."""
        with contextlib.suppress(StoreError):
            self.inbox.sleep()

    def _due(self) -> float:
        """Return the seconds until the next publish pass; infinity while publishing is paused."""
        if PUBLISH in self._paused:
            return math.inf
        return self._publish_at - time.monotonic()

    def _publish(self, begin: PipelinedScript | None) -> bool:
        with self._trail.publishing() if tracing.active else contextlib.nullcontext():
            published = self.publisher.publish(begin=begin)
        if published is None:
            return False
        self.files += len(published.written)
        if tracing.active and not published.full:
            self._trail.end()
        if published.written or published.removed or published.held:
            # Each publish of a file is dated a second later at least: more of them than that would
            # let the dates run ahead of the clock. Bounded, because a clock may be set back.
            ahead_s = min(published.dated - time.time() - self._most_ahead_s, MOST_AHEAD_S)
            # A full pass leaves shards that were dirty as long: only their dates hold them back.
            interval_s = 0 if published.full else self._site.publish_interval
            self._publish_at = time.monotonic() + max(interval_s, ahead_s)
        return bool(published.shards or published.held)

    def _stay_awake(self) -> None:
        now = time.monotonic()
        if now - self._awake_at > AWAKE_EVERY_S:
            self._awake_at = now
            self.inbox.stay_awake()

    @property
    def events(self) -> int:
        """Number of events this process has processed; `files` counts the written files."""
        return self._processor.events

    def expire(self) -> int:
        """Remove expired news and videos; return the number of entries examined. Raises
        StoreError.
        """
        return self.expiry.run()

    def _process(self, batch: Sequence[InboxEntry], begin: PipelinedScript | None = None) -> None:
        # Not `|=`: it reads `_left` before processing, and would undo a change by `adopt`
        # meanwhile.
        if not self._processor.process(batch, begin):
            self._left = True
