"""Looks at the pages of one site: one page in each turn of its host, within the budget of the day.

What a look finds is kept, and a page that stays broken is unlisted where that is configured, by an
event of our own: it is decided, logged and published like any other, and loses against what the
sender of the page says later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import redis

from shared.clock import now_ms
from shared.config.sites.site import Site
from shared.domain.deferral import Deferral
from shared.domain.looks import record as records
from shared.domain.looks.answers import Grade, PageAnswer, Verdict, judge
from shared.domain.looks.record import LookRecord
from shared.domain.page_record import TOMBSTONE_MS, PageRecord
from shared.errors import OutboundError, SitemapdError
from shared.sitemap import fragments
from shared.store.looks.look_store import DAY_MS, MOST_BROKEN, BrokenPage, LookState, LookStore
from shared.store.looks.look_turn import LookTurn, look_turn
from shared.store.looks.summary import LookSummaries, LookSummary
from shared.store.pages.lookup import PageLookup
from shared.telemetry.logs import logger
from worker.looks import page_fetch
from worker.looks.held_pages import HeldPages
from worker.looks.look_order import LookOrder
from worker.looks.robots_rules import RobotsRules
from worker.looks.unlister import Unlister

IDLE_S = 5.0
"""Seconds until a site with nothing to look at is asked again."""
SILENT = 2
"""Requests in a row without an answer, after which the host rests and the loop fails."""
REST_S, LONGEST_REST_S = 60.0, 3_600.0
SOONEST_MS, LATEST_MS = 60_000, DAY_MS
"""Milliseconds until a page that stays broken is looked at once more: ever longer."""
SUMMARY_S = 10.0
"""Seconds between two summaries while nothing changes for the worse or the better."""
GUARD_LEAST, GUARD_SHARE = 10, 0.1
"""Broken pages of a round, at least and by share, above which nothing is unlisted: so many at once
are rather a fault of the server than of the pages.
"""

_log = logger("looks")


class HostSilentError(SitemapdError):
    """A host that answers no request, or whose robots.txt cannot be fetched."""


class FoundPage(NamedTuple):
    """A page as it is listed, or was before it was unlisted; `held` is its event that waits."""

    loc: str
    page: PageRecord
    codes: tuple[str, ...]
    listed: bool
    held: Deferral | None = None


class SiteLooks:
    """Looks at one site that has the table `pages`, by the worker `owner`."""

    def __init__(self, client: redis.Redis, name: str, site: Site, owner: str) -> None:
        assert site.pages is not None
        self._client, self._name, self._site, self._owner = client, name, site, owner
        self._settings, self._host = site.pages, site.base.origin.partition("://")[2]
        self._store = LookStore(client, name, site.pages.records)
        self._order = LookOrder(client, name, site, self._store)
        self._robots = RobotsRules(client, site.base.origin)
        self._lookup = PageLookup.of(client, name, site)
        self._unlister = Unlister(client, name, self._store, self._lookup)
        self._held = HeldPages(client, name, site, self._store)
        self._summaries, self._told_at = LookSummaries(client, name), 0.0

    def look(self, go_on: Callable[[], None] = lambda: None) -> float:
        """Look at one page, if its turn has come; return the seconds until the next one may.

        `go_on` is called repeatedly, and aborts by raising. Raises StoreError, HostSilentError.
        """
        with look_turn(self._client, self._host, self._owner) as turn:
            if turn is None:
                return max(0.05, min(self._settings.interval, IDLE_S))
            state, at_ms = self._today(), now_ms()
            if state.spent >= self._settings.daily:
                return IDLE_S
            state = self._order.fill(self._held.fill(state), self._lookup.count(), at_ms)
            # By turns, so that many broken pages do not take the place of all others.
            found = self._next(at_ms, again_first=state.spent % 2 == 0)
            if found is None:
                self._tell(state, now=False)
                return IDLE_S
            turn.rest_s = REST_S  # also if an error ends this
            self._prepare(go_on)
            began = time.monotonic()
            rest_s = self._visit(found, state, turn, go_on)
            turn.rest_s = max(rest_s, min(time.monotonic() - began, REST_S))
            return turn.rest_s

    def _today(self) -> LookState:
        state, day = self._store.state(), now_ms() // DAY_MS
        if state.day != day:
            self._store.change(day=day, spent=0)
            state = state._replace(day=day, spent=0)
        return state

    def _next(self, at_ms: int, *, again_first: bool) -> FoundPage | None:
        """Return the next page that is listed, or was unlisted by us; forget all others."""
        while (loc := self._store.next(at_ms, again_first=again_first)) is not None:
            page = self._lookup.find(loc)
            if page is not None and page.live:
                fragment = self._lookup.current({loc: page}).get(loc)
                links = fragments.parse(fragment).alternates if fragment else ()
                codes = tuple(code for code, href in links if href == loc)
                return FoundPage(loc, page, codes, True, self._held.find(loc, page))
            if page is not None and (held := self._held.find(loc, page)) is not None:
                return FoundPage(loc, page, held.event.lang, False, held)
            if page is not None and self._unlister.is_ours(loc, page):
                return FoundPage(loc, page, (), listed=False)
            self._store.forget(loc)
        return None

    def _prepare(self, go_on: Callable[[], None]) -> None:
        try:
            self._robots.prepare(go_on)
        except OutboundError as error:
            raise HostSilentError(f"no page is looked at: {error}") from None

    def _visit(
        self, found: FoundPage, state: LookState, turn: LookTurn, go_on: Callable[[], None]
    ) -> float:
        """Look at a page; return the seconds for which the host then rests."""
        rest_s = max(self._settings.interval, self._robots.delay_s)
        if not self._robots.allows(found.loc):
            # No request: the next page may follow at once. A check names what robots.txt forbids.
            self._store.looked_at(found.loc, self._barred(found.loc, state), None, 0)
            return 0.0
        self._store.count(spent=1)
        answer = page_fetch.fetch(found.loc, go_on)
        if answer.status in {429, 503}:
            return self._refused(found.loc, answer, state, turn)
        self._store.change(silent=0 if answer.status else state.silent + 1)
        self._keep(found, answer, state)
        if not answer.status and state.silent + 1 >= SILENT:
            raise HostSilentError(f"{self._host} answers no request: {answer.fault}")
        return rest_s

    def _refused(self, loc: str, answer: PageAnswer, state: LookState, turn: LookTurn) -> float:
        """Return for how long a host rests that wants no more requests; other pages are next.

        Raises HostSilentError if it says so repeatedly.
        """
        times, wait_s = state.silent + 1, answer.wait_s
        self._store.change(silent=times)
        if wait_s is None:
            wait_s = min(REST_S * 2.0 ** min(times - 1, 10), LONGEST_REST_S)
        turn.rest_s = max(self._settings.interval, wait_s)
        self._store.postpone(loc, now_ms() + round(turn.rest_s * 1000) + self._wait_ms(None))
        _log.info("host asked to wait", site=self._name, status=answer.status, seconds=wait_s)
        if times >= SILENT:
            asked = f"{self._host} answers {answer.status}, {times} times in a row"
            raise HostSilentError(f"{asked}: it is asked again in {turn.rest_s:.0f} s")
        return turn.rest_s

    def _barred(self, loc: str, state: LookState) -> LookRecord:
        (before,) = self._store.records([loc])
        return records.after(before, now_ms() // 1000, 0, Grade.ODD, b"", number=state.round)

    def _keep(self, found: FoundPage, answer: PageAnswer, state: LookState) -> None:
        """Keep what was found, and let it be published if that is configured."""
        loc, at_s = found.loc, now_ms() // 1000
        verdict = judge(answer, found.codes)
        (before,), known = self._store.records([loc]), self._store.broken(loc)
        told_s, look_again = (found.page.stamp >> 16) // 1000, 0
        record = records.after(
            before, at_s, answer.status, verdict.grade, answer.print, told_s, state.round
        )
        if found.held is not None:
            record, look_again = self._held.settle(
                loc, found.held, verdict, before, record, listed=found.listed
            )
        broken = self._broken(verdict, known, at_s, state, listed=found.listed)
        first = found.listed and not (before and before.is_of(state.round, state.began))
        self._count(verdict, known, broken, state, first=first)
        broken = self._acted(found, verdict, broken, state)
        again_ms = now_ms() + self._wait_ms(broken)
        self._store.looked_at(loc, record, broken, again_ms)
        if look_again:
            self._store.look_again(loc, look_again)
        worse = (known is None) != (broken is None)
        self._tell(self._store.state(), now=worse)
        if worse:
            say = _log.warning if broken else _log.info
            say("page looked at", site=self._name, page=loc, found=verdict.why)

    def _broken(
        self, verdict: Verdict, known: BrokenPage | None, at_s: int, state: LookState,
        *, listed: bool,
    ) -> BrokenPage | None:  # fmt: skip
        """Return what is kept of a page that is not good; None if it is, or of too many."""
        if verdict.grade is Grade.GOOD:
            return None
        grade, counted = int(verdict.grade), 0
        if verdict.grade >= Grade.UNSURE:
            counted = state.sample if listed else known.counted if known else 0
        if known is None:
            full = self._store.counts()[0] >= MOST_BROKEN
            return None if full else BrokenPage(grade, verdict.why, at_s, 1, at_s, counted)
        times = known.times + 1 if known.grade == grade else 1
        since_s = known.since_s if known.grade == grade else at_s
        return BrokenPage(grade, verdict.why, since_s, times, at_s, counted, known.unlisted_s)

    def _count(
        self, verdict: Verdict, known: BrokenPage | None, broken: BrokenPage | None,
        state: LookState, *, first: bool,
    ) -> None:  # fmt: skip
        """Count a listed page with its `first` look of the round, and what later looks find. What
        is unlisted stays counted: the round may reach it no more.
        """
        failed = known is not None and known.counted == state.sample
        if broken is None:  # good, or one of too many
            fails = first and verdict.grade >= Grade.UNSURE
        else:
            fails = broken.counted == state.sample
        if first or fails != failed:
            self._store.count(looked=int(first), failed=int(fails) - int(failed))

    def _acted(
        self, found: FoundPage, verdict: Verdict, broken: BrokenPage | None, state: LookState
    ) -> BrokenPage | None:
        """Unlist a page that stays broken, list one again that is good."""
        unlists = self._settings.broken == "unlist"
        if found.held is not None and not found.listed:
            return broken
        if not found.listed:
            if verdict.grade <= Grade.ODD or not unlists:
                self._unlister.relist(found.loc, verdict.why)
            else:
                self._store.keep_tombstone(found.loc, now_ms() + TOMBSTONE_MS)
            return broken
        if broken is None or verdict.grade is not Grade.BROKEN or not unlists:
            return broken._replace(unlisted_s=0) if broken else None
        lasted_s = broken.at_s - broken.since_s + 1  # both are whole seconds
        confirmed = broken.times > 1 and lasted_s >= self._settings.confirm_minutes * 60
        if not confirmed or self._guarded(state):
            return broken._replace(unlisted_s=0)
        left = self._unlister.unlist(found.loc, found.page, verdict.why)
        return broken._replace(unlisted_s=broken.at_s if left else 0)

    def _guarded(self, state: LookState) -> bool:
        return state.failed > max(GUARD_LEAST, GUARD_SHARE * max(state.looked, 1))

    def _wait_ms(self, broken: BrokenPage | None) -> int:
        """Return the milliseconds until a broken page is looked at again."""
        confirm_ms = round(self._settings.confirm_minutes * 60_000)
        if broken is None or broken.times <= 1:
            return confirm_ms
        return min(max(confirm_ms, SOONEST_MS) << min(broken.times - 1, 20), LATEST_MS)

    def _tell(self, state: LookState, *, now: bool) -> None:
        """Store the summary, at once or once in a while."""
        if not now and time.monotonic() - self._told_at < SUMMARY_S:
            return
        self._told_at = time.monotonic()
        complete = bool(state.began) and not state.cursor and not self._store.due()
        enough = complete or state.looked_before == 0
        looked = state.looked + (0 if enough else state.looked_before)
        failed = state.failed + (0 if enough else state.failed_before)
        broken, unlisted = self._store.counts()
        self._summaries.set(LookSummary(
            now_ms(), looked, max(0, failed), self._lookup.count(),
            max(state.urls, state.urls_before), broken, unlisted, state.spent, complete,
        ))  # fmt: skip
