"""Process the events of one site: decide each, apply a batch at once, dead-letter those that keep
failing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple, TypeVar

import redis

from shared.config.sites.site import Site
from shared.domain.batch_state import BatchState, Policy
from shared.domain.decide_batch import ArrivedEvent, decide_all, with_sections
from shared.domain.page_record import Arrival
from shared.errors import (
    ContendedError,
    LostLineError,
    NotNowError,
    StoreDownError,
    StoreError,
    UrlError,
)
from shared.events.event import RELIST, Event, NewerSchemaError, SchemaError
from shared.events.event_fields import RESYNC
from shared.events.resync_scope import Scope
from shared.sitemap import urls
from shared.sitemap.urls import Base
from shared.store.client import PipelinedScript, RunningScript
from shared.store.inbox.inbox import Inbox, InboxEntry
from shared.store.pages.changes import BatchTooLargeError, ReadBatch
from shared.store.pages.page_repository import PageRepository
from shared.telemetry import tracing
from shared.telemetry.logs import logger
from shared.telemetry.tracing import Trail
from worker.ingest.group_relink import note, relink

MAX_TRIES = 5
LOST_AFTER = 20
"""Attempts to find a line that is being published (a commit takes milliseconds)."""
LOOK_AGAIN_S = 0.01
CONTENDED_S = 30.0
"""Seconds for which a batch is decided again after other workers' writes; then each event is
processed alone.
"""

Entries = Sequence[tuple[InboxEntry, Event]]
_LISTING = frozenset({"upsert", RELIST})
_Decided = tuple[str, str, str, bool]
"""Event id, loc, reason, whether published bytes change."""

_Done = TypeVar("_Done")

_log = logger("ingest")


class DecidedBatch(NamedTuple):
    """Batch that was decided on what was `read`, `packed` for apply.lua; with `resyncs`, it asks
    for some.
    """

    read: ReadBatch
    decided: Sequence[_Decided]
    packed: tuple[list[str], bytes]
    resyncs: bool


def of_site(event: Event, base: Base) -> Event:
    """Return `event`, as it was stored. Raises SchemaError if a site at `base` cannot have accepted
    it.
    """
    if event.type in _LISTING and event.loc is not None:
        try:
            canonical = urls.canonical(event.loc, base)
        except UrlError as error:
            raise SchemaError(f"the URL is none of this site: {error}") from error
        if canonical != event.loc:
            raise SchemaError("the URL is not in its canonical form")
    return event


def insist(attempt: Callable[[], _Done | None]) -> _Done:
    """Return what `attempt` does; it is repeated while it returns None or misses a line, as other
    workers write. Raises ContendedError after CONTENDED_S, LostLineError.
    """
    misses, until = 0, time.monotonic() + CONTENDED_S
    while time.monotonic() < until:
        try:
            if (done := attempt()) is not None:
                return done
        except LostLineError:
            misses += 1
            if misses > LOST_AFTER:
                raise
            time.sleep(LOOK_AGAIN_S)
    raise ContendedError(f"others were faster for {CONTENDED_S:.0f} s: tried again")


class EventProcessor:
    """Decides and applies events; publishes nothing.

    `events` counts the processed ones. Not thread-safe.
    """

    def __init__(
        self,
        client: redis.Redis,
        name: str,
        site: Site,
        consumer: str,
        trail: Trail,
        clock: Callable[[], float] = time.time,
        on_resync: Callable[[str], None] = lambda _site: None,
    ) -> None:
        """Create a processor; `clock` is that of news and video expiry (seconds since 1970).

        `on_resync` is called with the name of the site when a resync request was recorded; it must
        not raise.
        """
        self._name, self._consumer, self._trail = name, consumer, trail
        self._base, self._hints, self._routing = site.base, site.hints, site.routing
        self._notifies, self._titled = bool(site.notify.of_pages), site.outputs.llms
        self._shares_groups = bool(site.translations)
        self._waits_ms = site.waits_ms
        self.pages = PageRepository.of(client, name, site)
        self._inbox = Inbox(client, name)
        self._clock, self._on_resync = clock, on_resync
        self.events = 0

    def process(self, batch: Sequence[InboxEntry], begin: PipelinedScript | None = None) -> bool:
        """Apply a batch, with the script `begin` in the same round trip; False if some events
        failed.

        If the batch fails, its events are applied one by one, so that one cannot delay the others.
        Failed events stay with this consumer. Entries that cannot be an accepted event become dead
        letters at once (RELIABILITY T35). Raises StoreDownError.
        """
        entries, whole = self.load(batch)
        return self.process_loaded(entries, begin) and whole

    def load(self, batch: Sequence[InboxEntry]) -> tuple[Entries, bool]:
        """Return the entries of `batch` with their events; False if one that has none is left."""
        entries, whole = [], True
        for received in batch:
            try:
                entries.append((received, self._load(received)))
            except SchemaError as error:
                whole &= self._failed(received, error)
        return entries, whole

    def _load(self, received: InboxEntry) -> Event:
        """Return the event of an entry; SchemaError if this site cannot have accepted it."""
        if not received.payload:
            raise SchemaError("the entry holds no event")
        return of_site(Event.load(received.payload), self._base)

    def process_loaded(self, batch: Entries, begin: PipelinedScript | None) -> bool:
        """Apply loaded entries, as `process` does."""
        if not batch:
            return True
        try:
            traces = (received.trace for received, _ in batch)
            with self._trail.deciding(traces) if tracing.active else nullcontext():
                self._apply(batch, begin)
        except NotNowError:
            raise
        except BatchTooLargeError:
            half = len(batch) // 2
            first = self.process_loaded(batch[:half], None)
            return self.process_loaded(batch[half:], begin) and first
        except Exception as error:  # noqa: BLE001  # the other events continue
            if len(batch) == 1:
                self._failed(batch[0][0], error)
                return False
            processed = [self.process_loaded([each], None) for each in batch]
            return all(processed)
        self.events += len(batch)
        return True

    def _apply(self, batch: Entries, begin: PipelinedScript | None) -> None:
        """Apply `batch`, as often as other workers change its records meanwhile."""
        self._tell(insist(lambda: self._attempt(batch, begin)))

    def _attempt(self, batch: Entries, begin: PipelinedScript | None) -> Sequence[_Decided] | None:
        """Read, decide and apply once; return the decisions, None if it must be repeated."""
        work = self.decide(batch, self.read(batch))
        running = self.start(work, [begin] if begin and not begin.done else [])
        return work.decided if self._applied(work, running) else None

    def read(self, batch: Entries) -> ReadBatch:
        """Read the state that `decide` needs."""
        read = self.pages.read([event for _, event in batch if event.type != RESYNC])
        if self._waits_ms[1]:
            known = {loc: page for loc, page in read.state.pages.items() if page and page.live}
            read.state.listed = self.pages.lookup.current(known) if known else {}
        return read

    def decide(self, batch: Entries, read: ReadBatch) -> DecidedBatch:
        """Decide `batch` on what was `read`."""
        arrived, scopes, ids, payloads = [], {}, [], []
        for received, event in batch:
            ms, _, sequence = received.id.partition("-")
            arrival = Arrival(int(ms), int(sequence))
            ids.append(received.id)
            payloads.append(received.payload)
            if event.type == RESYNC:
                scopes[received.id] = str(Scope.of_event(event)), arrival.ms
            else:
                quiet = received.quiet or not self._notifies
                arrived.append(ArrivedEvent(event, arrival, quiet))
        now_ms = round(self._clock() * 1000)
        policy = Policy(self._routing, self._hints, now_ms, *self._waits_ms, self._titled)
        deciding = partial(decide_all, read.state, arrived, policy)
        outcomes, after = with_sections(deciding, partial(self._number, read.state))
        if after.groups:
            relink(self.pages, read, after)
            if self._shares_groups:
                note(read, after, policy.now_ms)
        of_pages, decided = iter(outcomes), []
        for ident, (_, event) in zip(ids, batch, strict=True):
            if ident in scopes:
                scope, _ = scopes[ident]
                decided.append((ident, scope, f"resync asked: {scope}", False))
            else:
                changed, reason = next(of_pages)
                decided.append((ident, event.loc or f"id {event.id}", reason, changed))
        packed = self.pages.packed(
            read, after, settled=ids, decisions=decided, payloads=payloads,
            resyncs=[*scopes.values()],
        )  # fmt: skip
        return DecidedBatch(read, decided, packed, bool(scopes))

    def _number(self, state: BatchState, names: Iterable[str]) -> None:
        """Give the sections `names` numbers, also in the `state` that was read before."""
        state.sections, state.names = self.pages.number(state.pages, names)

    def start(self, work: DecidedBatch, follow_ups: Sequence[PipelinedScript]) -> RunningScript:
        """Send the changes of `work`, then `follow_ups`."""
        return self.pages.start(work.packed, follow_ups)

    def finish(self, work: DecidedBatch, running: RunningScript) -> bool:
        """Wait for the reply; False if the batch must be read and decided again."""
        if not self._applied(work, running):
            return False
        self._tell(work.decided)
        self.events += len(work.decided)
        return True

    def _applied(self, work: DecidedBatch, running: RunningScript) -> bool:
        applied = int(running.reply()) == 0
        if applied and work.resyncs:
            self._on_resync(self._name)
        return applied

    def _tell(self, decided: Sequence[_Decided]) -> None:
        for ident, subject, reason, changed in decided:
            _log.debug(
                "decided", site=self._name, id=ident, page=subject, reason=reason, changed=changed
            )

    def _failed(self, received: InboxEntry, error: Exception) -> bool:
        """Log the failure of an event; return True if it is a dead letter now."""
        tries = self._inbox.tries(self._consumer).get(received.id, 1)
        _log.error(
            "event failed", site=self._name, id=received.id, tries=tries,
            reason=f"{type(error).__name__}: {error}",
        )  # fmt: skip
        waits = isinstance(error, NewerSchemaError | ContendedError)
        if waits or (tries < MAX_TRIES and not isinstance(error, SchemaError)):
            return False
        try:
            self._inbox.dead_letter(received.id, f"{type(error).__name__}: {error}", tries)
        except StoreDownError:
            raise
        except StoreError as refused:
            _log.error(
                "dead letter not stored", site=self._name, id=received.id, reason=str(refused)
            )
            return False
        return True
