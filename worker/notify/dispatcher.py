"""The engines of one site: what is due goes out, and what comes of it is written down."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import redis

from shared.config.site import Site
from shared.domain.page_record import PageRecord
from shared.errors import PublishError, StoreDownError
from shared.logs import logger
from shared.store.notify.delivery_lease import DeliveryLease, delivery_lease
from shared.store.notify.notification_queue import CHUNK, Fate, NotificationQueue
from shared.store.pages.lookup import PageLookup
from shared.store.publishing.publish_state import PublishState
from shared.store.sections import Sections
from worker.http.exchange import Outbound
from worker.notify import indexnow_key
from worker.notify.backoff import MOST_TRIES, rest_after
from worker.notify.engine import AnswerVerdict, Engine, NotificationOutcome, NotifiedPage
from worker.notify.engines.indexnow import IndexNow
from worker.notify.engines.registry import tellers
from worker.publishing.indexes import named

SAMPLE = 5

_log = logger("notify")


class Dispatcher:
    """Tells the engines of the site `name`; `owner` is who does so, for the others."""

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
        self._sections = Sections(client, name, site.limits)
        self._lookup = PageLookup(client, name, self._sections)
        state = PublishState(client, name)
        self.tellers = tellers(site, outbound, lambda: named(state, site))

    def due(self) -> list[str]:
        """The engines that are to be told of something."""
        return self.notices.due(list(self.tellers), self._clock())

    def tell(self, engine: str, progress: Callable[[], None] = lambda: None) -> bool:
        """Tell `engine` of one batch of what is due; whether there may be more.

        What is known of a page may be damaged: it is given up, and the others are told. `progress`
        is called before each request.
        """
        teller, now = self.tellers[engine], self._clock()
        endpoint = self._endpoint(engine, teller, now)
        left = self._site.notify.engines[engine].daily - self.notices.spent(engine, now)
        if endpoint is None or left <= 0:
            return False
        with delivery_lease(self._client, self.name, engine, self._owner) as mine:
            if mine is None:
                return False
            most = teller.most if teller.whole else min(teller.most, left)
            locs = mine.take(now, most, self._debounce(engine), whole=teller.whole)
            pages, damaged = self._pages(locs)
            for why, some in damaged.items():
                _log.error("not told", site=self.name, engine=engine, pages=some, reason=why)
                mine.bury(some, now, why)
            wanted = [page for page in pages if teller.wants(page)]
            mine.drop({page.loc for page in pages} - {page.loc for page in wanted})
            if wanted:
                self._send(mine, engine, endpoint, wanted, now, progress)
        return True

    def _pages(self, locs: Sequence[str]) -> tuple[list[NotifiedPage], dict[str, list[str]]]:
        """What is known of `locs` now: this, and not what was when they changed, is told. And those
        of which nothing can be known, by the reason.
        """
        found, damaged = [], dict[str, list[str]]()
        for start in range(0, len(locs), CHUNK):
            records, _ = self._lookup.records(locs[start : start + CHUNK])
            for loc, stored in records.items():
                try:
                    found.append(self._page(loc, stored))
                except StoreDownError:
                    raise
                except Exception as error:  # noqa: BLE001  # whatever is stored there
                    damaged.setdefault(f"its record is damaged: {error}", []).append(loc)
        return found, damaged

    def _page(self, loc: str, stored: bytes) -> NotifiedPage:
        page = PageRecord.unpack(stored) if stored else None
        if page is None or page.place is None:
            return NotifiedPage(loc, page is not None and page.live)
        number = page.place.section
        return NotifiedPage(loc, page.live, self._sections.names([number])[number])

    def _debounce(self, engine: str) -> int:
        return int(self._site.notify.engines[engine].debounce_minutes * 60_000)

    def _endpoint(self, engine: str, teller: Engine, now: int) -> str | None:
        """The first that may be asked; a pause ends where what was missing is there by now."""
        breakers = self.notices.breakers()
        for endpoint in teller.endpoints:
            breaker = breakers.get((engine, endpoint))
            if breaker is None or not breaker.open(now):
                return endpoint
        for endpoint in teller.endpoints:
            breaker = breakers[engine, endpoint]
            forbidden = breaker.paused and not breaker.refusals  # which is about the key
            if isinstance(teller, IndexNow) and forbidden and now >= breaker.until:
                seen = self.prepared(teller) or teller.check()
                if seen.told:
                    self.notices.set_breaker(engine, endpoint, breaker._replace(paused=False))
                    return endpoint
                rest = rest_after(seen._replace(verdict=AnswerVerdict.FORBIDDEN), breaker, now, 0.0)
                self.notices.set_breaker(engine, endpoint, rest.breaker)
        return None

    def prepared(self, teller: Engine) -> NotificationOutcome | None:
        """None if all that the engine looks for is in place, as far as we can put it there."""
        try:
            if isinstance(teller, IndexNow):
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
        teller, locs = self.tellers[engine], [page.loc for page in pages]

        def before() -> None:
            progress()
            mine.keep()
            if teller.whole:
                self.notices.spend(engine, now, 1)

        started, outcome = time.monotonic(), self.prepared(teller)
        if outcome is None:
            if not teller.whole:
                self.notices.spend(engine, now, len(locs))
            outcome = teller.tell(pages, endpoint, before)
        took = int((time.monotonic() - started) * 1000)
        following = self._conclude(mine, engine, endpoint, locs, outcome, now)
        fate = Fate(
            now, engine, endpoint, len(locs), tuple(locs[:SAMPLE]), outcome.status,
            outcome.verdict, took, outcome.detail, following,
        )  # fmt: skip
        self._record(fate)
        if outcome.verdict is AnswerVerdict.PENDING and (seen := teller.check()) and not seen.told:
            # 202 is no yes: without its file the key is found to be none.
            self._record(
                fate._replace(status=seen.status, outcome=seen.verdict, detail=seen.detail)
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
        """Write down what becomes of `locs`; when they are tried again (ms), 0 if they are not."""
        before = self.notices.breakers().get((engine, endpoint))
        teller = self.tellers[engine]
        if outcome.told:
            rejected = [loc for loc in locs if loc in set(outcome.rejected)]
            if rejected:
                mine.bury(rejected, now, "the engine does not want these")
            told = [loc for loc in locs if loc not in set(outcome.rejected)]
            mine.settle(told, now, self._debounce(engine), whole=teller.whole)
            if before is not None:
                self.notices.set_breaker(engine, endpoint, None)
            return 0
        rest = rest_after(outcome, before, now, self._jitter())
        self.notices.set_breaker(engine, endpoint, rest.breaker)
        if rest.bury:
            mine.bury(locs, now, outcome.detail)
            return 0
        held = outcome.verdict is AnswerVerdict.HELD
        tries = [0] * len(locs) if held else mine.tried(locs)
        worn = [loc for loc, n in zip(locs, tries, strict=True) if n >= MOST_TRIES]
        if worn:
            mine.bury(worn, now, f"{outcome.detail} (tried {MOST_TRIES} times)")
        again = [loc for loc, n in zip(locs, tries, strict=True) if n < MOST_TRIES]
        breakers = self.notices.breakers()
        others = (breakers.get((engine, other)) for other in teller.endpoints)
        at = now if any(not (other and other.open(now)) for other in others) else rest.at
        mine.postpone(again, at)
        return at if again else 0

    def _record(self, fate: Fate) -> None:
        self.notices.record(fate)
        said = {
            "site": self.name, "engine": fate.engine, "endpoint": fate.endpoint,
            "pages": fate.pages, "status": fate.status, "outcome": fate.outcome, "ms": fate.ms,
        }  # fmt: skip
        if fate.outcome in {AnswerVerdict.DONE, AnswerVerdict.PENDING}:
            _log.info("told", **said)
        else:
            _log.warning("not told", **said, reason=fate.detail)
