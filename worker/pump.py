"""Drain one site's inbox: read, decide, apply, publish, until nothing is left to do.

Publishing has a leading edge: the first change is published at once. Under load it happens once
per publish interval, and events that come in between are drained every `linger` seconds.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Container, Sequence

import redis

from shared.errors import PublishError, StoreDownError, StoreError
from shared.events import Event, NewerSchemaError
from shared.inbox import Inbox, Received
from shared.known import Arrival, Known, Policy, UnknownSectionError
from shared.members import RESYNC
from shared.patch import decide
from shared.scopes import Scope
from shared.settings import Settings
from shared.store import tally
from shared.store.lookup import loc_of
from shared.store.pages import Pages
from shared.store.queues import EVENTS, PUBLISH, Queues
from shared.store.redis import Errand
from shared.telemetry import logger
from shared.tracing import Trail
from worker.files import cause_of
from worker.publisher import PASS_SHARDS, Publisher

BATCH = 500
MAX_TRIES = 5
AWAKE_EVERY_S = 2.0
LOOK_S = 0.5
"""How long a pause may go unseen."""

_log = logger("pump")


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Pump:
    """Moves the events of one site from its inbox into its files."""

    def __init__(
        self,
        settings: Settings,
        client: redis.Redis,
        name: str,
        consumer: str,
        now_ms: Callable[[], int] = now_ms,
        on_resync: Callable[[str], None] = lambda _site: None,
    ) -> None:
        """`now_ms` is the clock by which news and videos expire: milliseconds since 1970.

        `on_resync` is told the name of the site when a resync was recorded; it raises nothing.
        """
        site = settings.sites[name]
        self.name = name
        self.inbox = Inbox(client, name)
        self._tells = bool(site.notify.engines)
        feed = site.feed_entries if site.feed else 0
        self.pages = Pages(client, name, site.limits, feed, tells=self._tells)
        self.publisher = Publisher(client, name, site, consumer)
        self._site, self._consumer, self._linger = site, consumer, settings.linger
        self._routing, self._now_ms = site.routing, now_ms
        self._on_resync = on_resync
        self._running = threading.Lock()
        self._stopping = threading.Event()
        self._queues, self._tally, self._trail = Queues(client, name), tally.of(client), Trail(name)
        self._paused: Container[str] = ()
        self._looked_at = self._published_at = float("-inf")
        self._awake_at = float("-inf")
        self._left = True

    def run(self, most_s: float = math.inf) -> bool:
        """Work until nothing is left; at once back if this process is at it already.

        After `most_s` seconds it stops all the same: True then, there may be more to do. Raises
        StoreError; whatever was not finished stays where it was and the sweep finds it.
        """
        if not self._running.acquire(blocking=False):
            return False
        asleep, until = False, time.monotonic() + most_s
        # Accepting an event has just said that somebody is awake; once more would cost a flush.
        self._awake_at = time.monotonic()
        try:
            self._look()
            self._read_again()
            asleep = self._drain(until)
        except PublishError as error:
            self._tally.add(self.name, f"publish_failed:{cause_of(error)}")
            _log.error("not published", site=self.name, reason=str(error))
            return False
        except BaseException:
            self._left = True
            raise
        finally:
            self._running.release()
            if not asleep:
                self._give_up()
        return time.monotonic() >= until

    def forgotten(self, since_s: float) -> bool:
        """Whether events wait for that long and nobody works on them."""
        waiting = self._queues.waiting()
        if waiting.oldest_ms is None or waiting.in_flight or self._running.locked():
            return False
        late = waiting.now_ms - waiting.oldest_ms > since_s * 1000
        return late and EVENTS not in self._queues.paused()

    def stop(self) -> None:
        """Let `run` come back after the batch it is at."""
        self._stopping.set()

    def adopt(self, dead: Sequence[str]) -> int:
        """Take over the events of the consumers `dead`; `run` settles them. How many."""
        taken = self.inbox.adopt(self._consumer, dead)
        self._left = self._left or taken > 0
        return taken

    def apply_all(self) -> None:
        """Apply every event that waits, and publish nothing. Raises StoreError."""
        with self._running:
            while batch := self.inbox.read(self._consumer, BATCH):
                self._settle(batch)

    def _read_again(self) -> None:
        """Settle what this consumer was given and never settled: adopted, failed, or in its former
        life, for its name is the same.
        """
        if not self._left or EVENTS in self._paused:
            return
        self._left, after = False, "0"
        while batch := self.inbox.read(self._consumer, BATCH, after):
            self._settle(batch)
            after = batch[-1].id

    def _drain(self, until: float) -> bool:
        """Read, apply and publish; whether the site could be laid to rest."""
        looked_again = False
        while not self._stopping.is_set() and time.monotonic() < until:
            self._stay_awake()
            self._look()
            waits = EVENTS not in self._paused
            batch = self.inbox.read(self._consumer, BATCH) if waits else []
            # What publishing begins with goes along with the last thing before it.
            errand = self.publisher.errand() if batch and self._due() <= 0 else None
            if batch:
                looked_again = False
                self._settle(batch, errand)
            due = self._due()
            if due <= 0 and self._publish(errand):
                continue
            if due <= 0 or (not batch and (due == math.inf or not self.publisher.state.dirty(1))):
                if batch:
                    continue
                if self.inbox.rest():
                    self._trail.end()
                    return True
                if looked_again:
                    # Only the sweep can help: a publish that is held up, or events that fail.
                    return False
                looked_again = True
            elif len(batch) < BATCH:
                self._stopping.wait(min(due, self._linger))
        return False

    def _give_up(self) -> None:
        """Let the next event wake somebody, although there is work left."""
        with contextlib.suppress(StoreError):
            self.inbox.sleep()

    def _due(self) -> float:
        """In how many seconds the next publish may be; infinity while publishing is paused."""
        if PUBLISH in self._paused:
            return math.inf
        return self._published_at + self._site.publish_interval - time.monotonic()

    def _publish(self, errand: Errand | None) -> bool:
        with self._trail.publishing():
            published = self.publisher.publish(errand=errand)
        if published is None:
            return False
        self._tally.add(self.name, "written", len(published.written))
        self._tally.add(self.name, "removed", len(published.removed))
        if len(published.shards) < PASS_SHARDS:
            self._trail.end()
        if published.written or published.removed or published.held:
            self._published_at = time.monotonic()
        return bool(published.shards or published.held)

    def _look(self) -> None:
        """See what an administrator has paused."""
        now = time.monotonic()
        if now - self._looked_at > LOOK_S:
            self._looked_at, self._paused = now, self._queues.paused()

    def _stay_awake(self) -> None:
        now = time.monotonic()
        if now - self._awake_at > AWAKE_EVERY_S:
            self._awake_at = now
            self.inbox.stay_awake()

    def _settle(self, batch: Sequence[Received], errand: Errand | None = None) -> None:
        """Apply a batch, and do `errand` behind it; if that fails, event by event, so that one
        cannot hold up the others.
        """
        try:
            with self._trail.deciding(received.trace for received in batch):
                self._apply(batch, errand)
        except StoreDownError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever an event does, the others go on
            if len(batch) == 1:
                self._failed(batch[0], error)
                return
            for received in batch:
                self._settle([received])

    def _apply(self, batch: Sequence[Received], errand: Errand | None) -> None:
        events = [(received, Event.load(received.payload)) for received in batch]
        asked = [(r, Scope.of_event(event)) for r, event in events if event.type == RESYNC]
        while True:
            read = self.pages.know([event for _, event in events if event.type != RESYNC])
            try:
                decisions = self._decide(events, read.known)
            except UnknownSectionError as error:
                self.pages.sections.numbers([error.name])
                continue
            settled = [received.id for received, _ in events]
            resyncs = [(str(scope), Arrival.of(received.id).ms) for received, scope in asked]
            relinked = self.pages.relink(read)
            if relinked and self.pages.apply(
                read, settled, decisions, errand, resyncs, [received.payload for received in batch]
            ):
                break
        if asked:
            self._on_resync(self.name)
        for ident, subject, reason, changed in decisions:
            _log.debug(
                "decided", site=self.name, id=ident, page=subject, reason=reason, changed=changed
            )

    def _decide(
        self, events: Sequence[tuple[Received, Event]], known: Known
    ) -> list[tuple[str, str, str, bool]]:
        policy = Policy(self._routing, self._site.hints, self._now_ms())
        decisions = []
        for received, event in events:
            if event.type == RESYNC:
                scope = str(Scope.of_event(event))
                decisions.append((received.id, scope, f"resync asked: {scope}", False))
                continue
            arrival, quiet = Arrival.of(received.id), received.quiet or not self._tells
            decision = decide(known, event, arrival, policy, quiet=quiet)
            subject = event.loc or f"id {event.id}"
            decisions.append((received.id, subject, decision.reason, decision.changed))
        return decisions

    def expire(self) -> int:
        """Take out the news and videos whose time is over; how many were looked at."""
        looked_at = 0
        while batch := self.pages.due(self._now_ms()):
            left = [(key, "expired", True) for key in sorted(batch.known.expired)]
            said = [("", loc_of(key), reason, changed) for key, reason, changed in left]
            if self.pages.apply(batch, decisions=said):
                looked_at += len(batch.known.expiry)
            if not batch.known.expiry:
                break  # all of them are being published this moment
        return looked_at

    def _failed(self, received: Received, error: Exception) -> None:
        self._left = True
        tries = self.inbox.tries(self._consumer).get(received.id, 1)
        _log.error(
            "event failed", site=self.name, id=received.id, tries=tries,
            reason=f"{type(error).__name__}: {error}",
        )  # fmt: skip
        if tries >= MAX_TRIES and not isinstance(error, NewerSchemaError):
            self.inbox.bury(received.id, f"{type(error).__name__}: {error}", tries)
