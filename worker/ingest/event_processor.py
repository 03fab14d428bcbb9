"""Process the events of one site: decide each, apply a batch at once, dead-letter those that keep
failing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import redis

from shared.clock import now_ms
from shared.config.site import Site
from shared.domain.batch_state import Arrival, BatchState, Policy, UnknownSectionError
from shared.domain.decide import decide
from shared.errors import ContendedError, LostLineError, StoreDownError, StoreError, UrlError
from shared.events.event import Event, NewerSchemaError, SchemaError
from shared.events.event_fields import RESYNC
from shared.events.resync_scope import Scope
from shared.logs import logger
from shared.sitemap import urls
from shared.store.client import PipelinedScript
from shared.store.inbox.inbox import Inbox, InboxEntry
from shared.store.pages.changes import BatchTooLargeError
from shared.store.pages.lookup import loc_of
from shared.store.pages.page_repository import PageRepository
from shared.tracing import Trail

MAX_TRIES = 5
SET_ASIDE_MS = 3_600_000
"""Milliseconds until an entry whose expiry failed is tried again."""

LOST_AFTER = 20
"""Attempts to find a line that is being published (a commit takes milliseconds)."""
LOOK_AGAIN_S = 0.01
CONTENDED_S = 30.0
"""Seconds for which a batch is decided again after other workers' writes; then each event is
processed alone.
"""

_log = logger("ingest")


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
        now_ms: Callable[[], int] = now_ms,
        on_resync: Callable[[str], None] = lambda _site: None,
    ) -> None:
        """Create a processor; `now_ms` is the clock of news and video expiry (ms since 1970).

        `on_resync` is called with the name of the site when a resync request was recorded; it must
        not raise.
        """
        self._name, self._site, self._consumer, self._trail = name, site, consumer, trail
        self._tells = bool(site.notify.engines)
        feed = site.feed_entries if site.feed else 0
        self.pages = PageRepository(client, name, site.limits, feed, tells=self._tells)
        self._inbox, self._routing = Inbox(client, name), site.routing
        self._now_ms, self._on_resync = now_ms, on_resync
        self.events = 0

    def settle(self, batch: Sequence[InboxEntry], errand: PipelinedScript | None = None) -> bool:
        """Apply a batch, with `errand` in the same round trip; False if some events failed.

        If the batch fails, its events are applied one by one, so that one cannot delay the others.
        Failed events stay with this consumer. Entries that cannot be an accepted event become dead
        letters at once (RELIABILITY T35). Raises StoreDownError.
        """
        events, whole = [], True
        for received in batch:
            try:
                events.append((received, self._load(received)))
            except SchemaError as error:
                whole &= self._failed(received, error)
        return self._settle(events, errand) and whole

    def _load(self, received: InboxEntry) -> Event:
        """Return the event of an entry; SchemaError if this site cannot have accepted it."""
        if not received.payload:
            raise SchemaError("the entry holds no event")
        event = Event.load(received.payload)
        if event.type == "upsert" and event.loc is not None:
            try:
                canonical = urls.canonical(event.loc, self._site.base)
            except UrlError as error:
                raise SchemaError(f"the URL is none of this site: {error}") from error
            if canonical != event.loc:
                raise SchemaError("the URL is not in its canonical form")
        return event

    def _settle(
        self, batch: Sequence[tuple[InboxEntry, Event]], errand: PipelinedScript | None
    ) -> bool:
        if not batch:
            return True
        try:
            with self._trail.deciding(received.trace for received, _ in batch):
                self._apply(batch, errand)
        except StoreDownError:
            raise
        except BatchTooLargeError:
            half = len(batch) // 2
            first = self._settle(batch[:half], None)
            return self._settle(batch[half:], errand) and first
        except Exception as error:  # noqa: BLE001  # the other events continue
            if len(batch) == 1:
                self._failed(batch[0][0], error)
                return False
            settled = [self._settle([each], None) for each in batch]
            return all(settled)
        self.events += len(batch)
        return True

    def _apply(
        self, events: Sequence[tuple[InboxEntry, Event]], errand: PipelinedScript | None
    ) -> None:
        asked = [(r, Scope.of_event(event)) for r, event in events if event.type == RESYNC]
        misses, until = 0, time.monotonic() + CONTENDED_S
        decisions: Sequence[tuple[str, str, str, bool]] = ()
        while not decisions:
            if time.monotonic() > until:
                raise ContendedError(f"others were faster for {CONTENDED_S:.0f} s: tried again")
            try:
                decisions = self._attempt(events, asked, errand)
            except LostLineError:
                misses += 1
                if misses > LOST_AFTER:
                    raise
                time.sleep(LOOK_AGAIN_S)
        if asked:
            self._on_resync(self._name)
        for ident, subject, reason, changed in decisions:
            _log.debug(
                "decided", site=self._name, id=ident, page=subject, reason=reason, changed=changed
            )

    def _attempt(
        self,
        events: Sequence[tuple[InboxEntry, Event]],
        asked: Sequence[tuple[InboxEntry, Scope]],
        errand: PipelinedScript | None,
    ) -> Sequence[tuple[str, str, str, bool]]:
        """Read, decide and apply once; return the decisions, empty if it must be repeated."""
        read = self.pages.know([event for _, event in events if event.type != RESYNC])
        try:
            decisions = self._decide(events, read.known)
        except UnknownSectionError as error:
            self.pages.sections.numbers([error.name])
            return ()
        self.pages.relink(read)
        applied = self.pages.apply(
            read,
            [received.id for received, _ in events],
            decisions,
            errand,
            [(str(scope), Arrival.of(received.id).ms) for received, scope in asked],
            [received.payload for received, _ in events],
        )
        return decisions if applied else ()

    def _decide(
        self, events: Sequence[tuple[InboxEntry, Event]], known: BatchState
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
        """Remove expired news and videos; return the number of entries examined.

        An entry that fails is tried again an hour later and does not stop others. Raises
        StoreError.
        """
        looked_at = 0
        while (keys := self.pages.expiring(self._now_ms())) and (some := self._expire(keys)):
            looked_at += some
        return looked_at

    def _expire(self, keys: Sequence[bytes]) -> int:
        """Return how many of `keys` were examined; 0 if all are being published right now."""
        try:
            while (batch := self.pages.due(keys, self._now_ms())).known.expiry:
                left = [(key, "expired", True) for key in sorted(batch.known.expired)]
                said = [("", loc_of(key), reason, changed) for key, reason, changed in left]
                if self.pages.apply(batch, decisions=said):
                    break
        except StoreDownError:
            raise
        except Exception as error:  # noqa: BLE001  # any error of the stored bytes
            if len(keys) > 1:
                return sum(self._expire([key]) for key in keys)
            self.pages.expect({keys[0]: self._now_ms() + SET_ASIDE_MS})
            _log.error(
                "expiry failed", site=self._name, entry=keys[0].decode(errors="backslashreplace"),
                reason=f"{type(error).__name__}: {error}", again_s=SET_ASIDE_MS // 1000,
            )  # fmt: skip
            return 1
        return len(batch.known.expiry)

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
            self._inbox.bury(received.id, f"{type(error).__name__}: {error}", tries)
        except StoreDownError:
            raise
        except StoreError as refused:
            _log.error(
                "dead letter not stored", site=self._name, id=received.id, reason=str(refused)
            )
            return False
        return True
