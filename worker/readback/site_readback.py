"""Reading back from the engines of one site: what is due, within the budget, and what they said."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import redis

from shared.admin.read_back import delays_of
from shared.config.sites.site import Site
from shared.domain.index_status import EngineAnswer, IndexState, IndexStatus
from shared.errors import OutboundError
from shared.store.notify.notification_queue import Breaker, NotificationQueue
from shared.store.readback.page_chains import PageChains
from shared.store.readback.reading_state import EngineReading, ReadingState
from shared.telemetry.logs import logger
from worker.http.exchange import Outbound
from worker.notify.backoff import rest_after
from worker.notify.engine import AnswerVerdict, NotificationOutcome
from worker.readback.engine_reader import EngineReader, ReadingOverError, UnreadError
from worker.readback.publish_follower import PublishFollower
from worker.readback.registry import engine_readers

LOOKS_A_MINUTE = 6
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
SUMMARY_MS = 5 * MINUTE_MS

MOST_REFUSED = 3
"""Pages in a row that an engine may refuse to answer about."""

_NOWHERE = IndexStatus(IndexState.UNKNOWN, "in none of its lists")

_log = logger("readback")


class EngineRestsError(OutboundError):
    """The engine failed before, and is not asked until its back-off is over."""


class SiteReadback:
    """Reading back from the engines of the site `name`.

    `clock` gives milliseconds since 1970, `jitter` numbers in 0..1. `before` is called before each
    request; it may raise.
    """

    def __init__(
        self, client: redis.Redis, name: str, site: Site, *, clock: Callable[[], int],
        outbound: Outbound, jitter: Callable[[], float],
    ) -> None:  # fmt: skip
        self.name, self.before = name, _nothing
        self._config, self._clock, self._jitter = site.readback, clock, jitter
        self._budget, self._state = NotificationQueue(client, name), ReadingState(client, name)
        self._summed_ms = 0
        self.chains = PageChains(client, name, self._config.pages)
        self.follower = PublishFollower(client, name, site)
        spend = {engine: partial(self._spend, engine) for engine in self._config.engines}
        self.readers = engine_readers(site, outbound, spend)

    def read(self, engine: str) -> bool:
        """Ask `engine` about what is due; return True if there is more to ask.

        Raises UnreadError, EngineRestsError, StoreError.
        """
        now, reader = self._clock(), self.readers[engine]
        reading = self._state.readings([engine])[engine]
        if reading.breaker is not None and now < reading.breaker.until:
            if reading.breaker.failures > 0:
                raise EngineRestsError(reading.breaker.why)
            return False
        try:
            reading = self._read_sitemaps(engine, reader, reading, now)
            asked = self._ask(engine, reader, now) if reader.asked else 0
        except ReadingOverError:
            return False
        except UnreadError as error:
            self._rest(engine, reading, error.outcome, now)
            if error.outcome.verdict is AnswerVerdict.BUSY:
                return False
            raise
        if asked or reading.breaker or reading.sitemaps_ms == now:
            self._state.store(engine, reading._replace(read_ms=now, breaker=None))
        return asked > 0

    def sum_up(self) -> None:
        """Store the delays by section anew, if that was not done lately: it reads every page."""
        now = self._clock()
        if now - self._summed_ms >= SUMMARY_MS:
            engines = [*self.readers]
            found = delays_of(self.chains.all(engines), engines)
            self._state.store_summary(found)
            self._summed_ms = now if found else 0  # the first pages are shown at once

    def ask(self, engine: str, loc: str) -> EngineAnswer | None:
        """Ask `engine` about the page `loc` now, and follow it; None if it is not listed.

        Raises UnreadError, ReadingOverError, StoreError.
        """
        now = self._clock()
        if not self.chains.read([loc], []):
            page = self.follower.published(loc)
            if page is None:
                return None
            self.chains.follow({loc: page}, self.readers)
        status = self._status(self.readers[engine], loc)
        return self._answered(engine, {loc: status}, now).get(loc)

    def _read_sitemaps(
        self, engine: str, reader: EngineReader, reading: EngineReading, now: int
    ) -> EngineReading:
        if now - reading.sitemaps_ms < self._config.sitemaps_hours * HOUR_MS:
            return reading
        found = reader.sitemaps()
        self._state.store_sitemaps(engine, found)
        _log.info("sitemaps read back", site=self.name, engine=engine, sitemaps=len(found))
        if not reader.asked:
            listed = dict(reader.pages())
            first = int(self._config.first_minutes * MINUTE_MS)
            due = self.chains.due(engine, now, first, self._config.pages)
            self._answered(engine, dict.fromkeys(due, _NOWHERE) | listed, now)
        reading = reading._replace(sitemaps_ms=now)
        self._state.store(engine, reading)
        return reading

    def _ask(self, engine: str, reader: EngineReader, now: int) -> int:
        """Ask about the pages that are due, as many as one look may; return their number."""
        most = max(1, self._config.engines[engine].per_minute // LOOKS_A_MINUTE)
        first, refused = int(self._config.first_minutes * MINUTE_MS), 0
        due = self.chains.due(engine, now, first, most)
        for loc in due:
            status = self._status(reader, loc)
            refused = refused + 1 if status.state is IndexState.REFUSED else 0
            self._answered(engine, {loc: status}, now)
            if refused == MOST_REFUSED:
                raise UnreadError(NotificationOutcome(AnswerVerdict.FAILED, status.said))
        return len(due)

    def _status(self, reader: EngineReader, loc: str) -> IndexStatus:
        try:
            return reader.page(loc)
        except UnreadError as error:
            if error.outcome.verdict is not AnswerVerdict.REFUSED:
                raise
            return IndexStatus(IndexState.REFUSED, error.outcome.detail)

    def _answered(
        self, engine: str, found: dict[str, IndexStatus], now: int
    ) -> dict[str, EngineAnswer]:
        least = int(self._config.again_minutes * MINUTE_MS)
        return self.chains.answered(engine, found, now, least)

    def _rest(
        self, engine: str, reading: EngineReading, outcome: NotificationOutcome, now: int
    ) -> None:
        """Leave the engine alone for a while, longer after each failure."""
        busy = outcome.verdict is AnswerVerdict.BUSY
        rest = rest_after(outcome, reading.breaker, now, self._jitter())
        breaker = rest.breaker or Breaker(1, now + MINUTE_MS, outcome.detail)
        if busy:  # it said when to come back: no failure
            breaker = breaker._replace(failures=0)
        else:
            breaker = breaker._replace(failures=max(1, breaker.failures))
        self._state.store(engine, reading._replace(breaker=breaker))
        _log.warning(
            "not read back", site=self.name, engine=engine, status=outcome.status,
            outcome=outcome.verdict, reason=outcome.detail,
        )  # fmt: skip

    def _spend(self, engine: str) -> None:
        self.before()
        budget, now = f"readback:{engine}", self._clock()
        if self._budget.spent(budget, now) >= self._config.engines[engine].daily:
            raise ReadingOverError
        self._budget.spend(budget, now, 1)


def _nothing() -> None:
    """Do nothing before a request."""
