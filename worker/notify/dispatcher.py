"""Notification of the engines of one site: send what is due and record the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import redis

from shared.config.sites.site import Site
from shared.domain.page_record import PageRecord
from shared.errors import PublishError, StoreDownError
from shared.store.notify.delivery_lease import DeliveryLease, delivery_lease
from shared.store.notify.notification_queue import CHUNK, NotificationQueue, RequestRecord
from shared.store.pages.lookup import PageLookup
from shared.store.publishing.publish_state import PublishState
from shared.store.round_trips import read
from shared.store.targets.target_state import records_reading
from shared.telemetry.logs import logger
from worker.http.exchange import Outbound
from worker.notify import indexnow_key
from worker.notify.backoff import MOST_TRIES, rest_after
from worker.notify.engine import AnswerVerdict, Engine, NotificationOutcome, NotifiedPage
from worker.notify.engines.indexnow import IndexNow
from worker.notify.engines.registry import engine_apis
from worker.publishing.indexes import named

SAMPLE = 5
TARGET_MS = 60_000
"""Milliseconds for which a purge waits for a target that lacks the file."""

_log = logger("notify")


class Dispatcher:
    """Notifies the engines of the site `name`; `owner` names the worker in the delivery lease.

    `clock` gives milliseconds since 1970; `jitter` numbers in 0..1.
    """

    def __init__(
        self,
        client: redis.Redis,
        name: str,
        site: Site,
        owner: str,
        *,
        clock: Callable[[], int],
        outbound: Outbound,
        jitter: Callable[[], float],
    ) -> None:
        self.name, self.notices = name, NotificationQueue(client, name)
        self._client, self._site, self._owner = client, site, owner
        self._clock, self._jitter = clock, jitter
        self._lookup = PageLookup.of(client, name, site)
        state = PublishState(client, name)
        self.engine_apis = engine_apis(site, outbound, lambda: named(state, site))

    def due(self) -> list[str]:
        """Return the engines with due notifications. Raises StoreError."""
        return self.notices.due(list(self.engine_apis), self._clock())

    def notify(self, engine: str, progress: Callable[[], None] = lambda: None) -> bool:
        """Notify `engine` of one batch of due pages; return True if there may be more.

        A page with a damaged record becomes a dead notification, and the others are sent.
        `progress` is called before each request. Raises StoreError.
        """
        api, now = self.engine_apis[engine], self._clock()
        endpoint = self._endpoint(engine, api, now)
        left = self._site.notify.engines[engine].daily - self.notices.spent(engine, now)
        if endpoint is None or left <= 0:
            return False
        with delivery_lease(self._client, self.name, engine, self._owner) as mine:
            if mine is None:
                return False
            most = api.most if api.whole else min(api.most, left)
            until = self._everywhere(now) if api.files else now
            locs = mine.take(until, most, self._debounce(engine), whole=api.whole)
            if api.files and not locs:
                return False
            pages, damaged = self._pages(locs) if not api.files else (_files(locs), {})
            for why, some in damaged.items():
                _log.error(
                    "notification failed", site=self.name, engine=engine, pages=some, reason=why
                )
                mine.give_up(some, now, why)
            wanted = [page for page in pages if api.wants(page)]
            mine.drop({page.loc for page in pages} - {page.loc for page in wanted})
            if wanted:
                self._send(mine, engine, endpoint, wanted, now, progress)
        return True

    def _everywhere(self, now: int) -> int:
        """Return until when files were published that all targets have (ms since 1970); those that
        lag for TARGET_MS are not waited for: they are purged again once these follow.
        """
        if len(self._site.every_target) == 1:
            return now
        records = read(self._client, records_reading(self.name)).values()
        behind = (each.behind_ms for each in records if each.behind_ms > now - TARGET_MS)
        return min([now, *(since - 1 for since in behind)])

    def _pages(self, locs: Sequence[str]) -> tuple[list[NotifiedPage], dict[str, list[str]]]:
        """Return the current state of `locs`, not that at the time of their change, and the locs
        with damaged records, by reason.
        """
        found, damaged = [], dict[str, list[str]]()
        for start in range(0, len(locs), CHUNK):
            records, _ = self._lookup.records(locs[start : start + CHUNK])
            for loc, stored in records.items():
                try:
                    found.append(self._page(loc, stored))
                except StoreDownError:
                    raise
                except Exception as error:  # noqa: BLE001  # any error of the stored bytes
                    damaged.setdefault(f"its record is damaged: {error}", []).append(loc)
        return found, damaged

    def _page(self, loc: str, stored: bytes) -> NotifiedPage:
        page = PageRecord.unpack(stored) if stored else None
        if page is None or page.place is None:
            return NotifiedPage(loc, page is not None and page.live)
        number = page.place.section
        return NotifiedPage(loc, page.live, self._lookup.sections.names([number])[number])

    def _debounce(self, engine: str) -> int:
        return int(self._site.notify.engines[engine].debounce_minutes * 60_000)

    def _endpoint(self, engine: str, api: Engine, now: int) -> str | None:
        """Return the first endpoint without an open breaker; a pause ends once its cause is
        gone.
        """
        breakers = self.notices.breakers()
        for endpoint in api.endpoints:
            breaker = breakers.get((engine, endpoint))
            if breaker is None or not breaker.open(now):
                return endpoint
        for endpoint in api.endpoints:
            breaker = breakers[engine, endpoint]
            forbidden = breaker.paused and not breaker.refusals  # which concerns the key
            if isinstance(api, IndexNow) and forbidden and now >= breaker.until:
                seen = self.prepared(api) or api.check()
                if seen.told:
                    self.notices.set_breaker(engine, endpoint, breaker._replace(paused=False))
                    return endpoint
                rest = rest_after(seen._replace(verdict=AnswerVerdict.FORBIDDEN), breaker, now, 0.0)
                self.notices.set_breaker(engine, endpoint, rest.breaker)
        return None

    def prepared(self, api: Engine) -> NotificationOutcome | None:
        """Return None if the files that the engine looks for are in place, after writing ours."""
        try:
            if isinstance(api, IndexNow):
                indexnow_key.ensure(self._site)
        except PublishError as error:
            return NotificationOutcome(AnswerVerdict.HELD, str(error))
        return None

    def _send(
        self,
        mine: DeliveryLease,
        engine: str,
        endpoint: str,
        pages: Sequence[NotifiedPage],
        now: int,
        progress: Callable[[], None],
    ) -> None:
        api, locs = self.engine_apis[engine], [page.loc for page in pages]

        def before() -> None:
            progress()
            mine.keep()
            if api.whole:
                self.notices.spend(engine, now, 1)

        started, outcome = time.monotonic(), self.prepared(api)
        if outcome is None:
            if not api.whole:
                self.notices.spend(engine, now, len(locs))
            outcome = api.submit(pages, endpoint, before)
        took = int((time.monotonic() - started) * 1000)
        following = self._conclude(mine, engine, endpoint, locs, outcome, now)
        record = RequestRecord(
            now, engine, endpoint, len(locs), tuple(locs[:SAMPLE]), outcome.status,
            outcome.verdict, took, outcome.detail, following,
        )  # fmt: skip
        self._record(record)
        if outcome.verdict is AnswerVerdict.PENDING and (seen := api.check()) and not seen.told:
            # 202 is not final: without its file the key turns out invalid.
            self._record(
                record._replace(status=seen.status, outcome=seen.verdict, detail=seen.detail)
            )

    def _conclude(
        self,
        mine: DeliveryLease,
        engine: str,
        endpoint: str,
        locs: Sequence[str],
        outcome: NotificationOutcome,
        now: int,
    ) -> int:
        """Record the outcome for `locs`; return when they are retried (ms since 1970), 0 if not."""
        before = self.notices.breakers().get((engine, endpoint))
        api = self.engine_apis[engine]
        if outcome.told:
            rejected = [loc for loc in locs if loc in set(outcome.rejected)]
            if rejected:
                mine.give_up(rejected, now, "the engine rejected these URLs")
            told = [loc for loc in locs if loc not in set(outcome.rejected)]
            mine.complete(told, now, self._debounce(engine), whole=api.whole)
            if before is not None:
                self.notices.set_breaker(engine, endpoint, None)
            return 0
        rest = rest_after(outcome, before, now, self._jitter())
        self.notices.set_breaker(engine, endpoint, rest.breaker)
        if rest.give_up:
            mine.give_up(locs, now, outcome.detail)
            return 0
        held = outcome.verdict is AnswerVerdict.HELD
        tries = [0] * len(locs) if held else mine.tried(locs)
        worn = [loc for loc, n in zip(locs, tries, strict=True) if n >= MOST_TRIES]
        if worn:
            mine.give_up(worn, now, f"{outcome.detail} (tried {MOST_TRIES} times)")
        again = [loc for loc, n in zip(locs, tries, strict=True) if n < MOST_TRIES]
        breakers = self.notices.breakers()
        others = (breakers.get((engine, other)) for other in api.endpoints)
        at = now if any(not (other and other.open(now)) for other in others) else rest.at
        mine.postpone(again, at)
        return at if again else 0

    def _record(self, record: RequestRecord) -> None:
        self.notices.record(record)
        said = {
            "site": self.name, "engine": record.engine, "endpoint": record.endpoint,
            "pages": record.pages, "status": record.status, "outcome": record.outcome,
            "ms": record.ms,
        }  # fmt: skip
        if record.outcome in {AnswerVerdict.DONE, AnswerVerdict.PENDING}:
            _log.info("notified", **said)
        else:
            _log.warning("notification failed", **said, reason=record.detail)


def _files(locs: Sequence[str]) -> list[NotifiedPage]:
    return [NotifiedPage(loc, live=True) for loc in locs]
