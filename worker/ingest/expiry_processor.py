"""Changes by time: news and videos leave when their time is over, scheduled news appears, deferred
events take effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import redis

from shared.config.settings import Settings
from shared.domain import expiry
from shared.domain.batch_state import BatchState
from shared.domain.decide import include
from shared.domain.decide_batch import copied
from shared.domain.deferral import AT
from shared.domain.translation_groups import GROUP
from shared.errors import ContendedError, StoreDownError, StoreError
from shared.store.pages.changes import ReadBatch, loc_of
from shared.store.pages.expiry_schedule import ExpirySchedule
from shared.store.pages.page_repository import PageRepository
from shared.telemetry.logs import logger
from worker.ingest.deferred_events import DeferredEvents
from worker.ingest.event_processor import insist
from worker.ingest.shared_groups import SharedGroups

SET_ASIDE_MS = 3_600_000
"""Milliseconds until an entry whose expiry failed is tried again."""

_log = logger("ingest")


class ExpiryProcessor:
    """Applies to the entries of one site what its `schedule` says is due by `clock` (seconds since
    1970).
    """

    def __init__(
        self, client: redis.Redis, name: str, settings: Settings, pages: PageRepository,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._name, self._pages, self._clock = name, pages, clock
        site, partners = settings.sites[name], settings.partners(name)
        self.groups = SharedGroups(client, name, pages, partners)
        self._deferred = DeferredEvents(site, pages)
        self.schedule = ExpirySchedule(client, name)

    def run(self) -> int:
        """Remove expired news and videos, list scheduled news, decide deferred events; return the
        number of entries examined.

        An entry that fails is tried again an hour later and does not stop others. Raises
        StoreError, also if a site that shares groups could not be told of one: it is told later.
        """
        examined = 0
        while (keys := self.schedule.due(self._now_ms())) and (some := self._expire(keys)):
            examined += some
        for (partner, _), reason in self.groups.failed.items():
            raise StoreError(f"{partner} could not be told of translation groups: {reason}")
        return examined

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)

    def _expire(self, keys: Sequence[bytes]) -> int:
        """Return how many of `keys` were examined; 0 if all are being published right now."""
        try:
            return self._apply([key.decode() for key in keys])
        except (StoreDownError, ContendedError):
            raise
        except Exception as error:  # noqa: BLE001  # any error of the stored bytes
            if len(keys) > 1:
                return sum(self._expire([key]) for key in keys)
            self.schedule.set({keys[0]: self._now_ms() + SET_ASIDE_MS})
            _log.error(
                "expiry failed", site=self._name, entry=keys[0].decode(errors="backslashreplace"),
                reason=f"{type(error).__name__}: {error}", again_s=SET_ASIDE_MS // 1000,
            )  # fmt: skip
            return 1

    def _apply(self, keys: Sequence[str]) -> int:
        # Deferred events are apart: they are decided on all that any event is.
        deferred = [key for key in keys if key.startswith(AT)]
        groups = [key for key in keys if key.startswith(GROUP)]
        rest = [key for key in keys if not key.startswith((AT, GROUP))]
        done = self.groups.tell(groups, self._now_ms()) if groups else 0
        if deferred:
            done += insist(lambda: self._attempt_deferred(deferred))
        return done + (insist(lambda: self._attempt(rest)) if rest else 0)

    def _attempt(self, keys: Sequence[str]) -> int | None:
        """Read, decide and apply once; None if it must be repeated."""
        read, after = self.decided(keys)
        decisions = [("", loc_of(key), "expired", True) for key in sorted(after.expired)]
        if not after.expiry or self._pages.apply(read, after, decisions=decisions):
            return len(after.expiry)
        return None

    def _attempt_deferred(self, keys: Sequence[str]) -> int | None:
        read, after, decisions = self._deferred.decided(keys, self._now_ms())
        return len(keys) if self._pages.apply(read, after, decisions=decisions) else None

    def decided(self, keys: Sequence[str]) -> tuple[ReadBatch, BatchState]:
        """Return what is stored of the entries `keys`, and their state after what is due now.

        Raises StoreError.
        """
        coming = self._pages.lookup.coming(keys)
        read = self._pages.read_keys(list(dict.fromkeys([*keys, *map(loc_of, coming)])))
        known = {key: page for key, page in read.state.pages.items() if page}
        listed = self._pages.lookup.current(known)
        after = copied(read.state)
        for changes in expiry.due(read.state, keys, listed, coming, self._now_ms()):
            include(after, changes)
        return read, after
