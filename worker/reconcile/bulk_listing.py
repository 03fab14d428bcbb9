"""Bulk listing: pages of a source of which nothing is stored become records and patches at once,
hundreds in one script, without the inbox.

The script writes nothing if something is stored of one of them by now, so that events which other
workers apply meanwhile win as they do among themselves. Everything else is for the inbox: pages
that are stored, more than plain, of sites with feeds or with rules of routing, and all of them
while an administrator has paused the intake or the processing of events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import redis

from shared.config.sites.site import Site
from shared.domain.new_pages import ADDED, decide_new
from shared.domain.page_record import Arrival, digest_of, owner_of
from shared.domain.routing import DEFAULT_SECTION
from shared.errors import StoreDownError, StoreError
from shared.events.event import NATIVE
from shared.events.plain_page import PlainPage
from shared.store.operations.queues import EVENTS, INTAKE, Queues
from shared.store.pages.changes import MOST_BYTES
from shared.store.pages.page_repository import PageRepository

PATIENCE_S = 10.0
"""Seconds to wait for earlier events; then all further pages go into the inbox too."""

FIRST_SEQUENCE = 1_000_000
"""Sequence number in the first event id: none that the inbox gives within a millisecond."""

TRIES = 3
"""Attempts to list pages while other workers list some of them."""


class BulkListing:
    """Lists pages of one site; a page without a version has that of the import, `began_ms`."""

    def __init__(
        self, client: redis.Redis, name: str, site: Site, began_ms: int, *, quiet: bool
    ) -> None:
        """Prepare; with `quiet`, search engines are not notified."""
        self._pages = PageRepository.of(client, name, site)
        self._queues = Queues(client, name)
        self._hints, self._began_ms = site.hints, began_ms
        self._told = int(bool(site.notify.of_pages) and not quiet)
        self._possible = bool(site.routing.unruled) and not site.recent_entries
        self._some_known = False
        self._after_ms, self._sequence = began_ms, FIRST_SEQUENCE

    def wait_for(self, accepted_ms: int) -> None:
        """List nothing more until all events that the inbox accepted by then (ms since 1970) are
        applied: an id that two pages of a source have is the later one's.
        """
        self._after_ms = max(self._after_ms, accepted_ms)

    def add(self, pages: Sequence[PlainPage], drain: Callable[[], None]) -> list[PlainPage]:
        """List those of `pages` that nothing is stored of; return the others, for the inbox.

        `drain` is called while events wait that were accepted before. Raises StoreDownError.
        """
        left: list[PlainPage] = []
        asked = pages
        try:
            self._pages.number({})
            possible = self._possible and not self._pages.sections.former_owners
            if not pages or not possible or (arrival := self._turn(drain)) is None:
                return list(pages)
            for _ in range(TRIES):
                asked, known = self._unknown(asked)
                left += known
                rest = self._attempt(asked, arrival)
                if rest is not None:
                    return left + rest
                self._some_known = True
        except StoreDownError:
            raise
        except StoreError:  # a damaged state: the inbox settles which page is at fault
            pass
        return [*left, *asked]

    def _turn(self, drain: Callable[[], None]) -> Arrival | None:
        """Return the arrival of pages that are listed now; None if they may not be."""
        until = time.monotonic() + PATIENCE_S
        while True:
            if not self._queues.paused().keys().isdisjoint({EVENTS, INTAKE}):
                return None
            depth = self._queues.waiting()
            if depth.oldest_ms is None or depth.oldest_ms > self._after_ms:
                return Arrival(depth.now_ms, 0)
            if time.monotonic() > until:
                self._possible = False
                return None
            drain()

    def _unknown(self, pages: Sequence[PlainPage]) -> tuple[Sequence[PlainPage], list[PlainPage]]:
        """Return those of `pages` that nothing is stored of, as far as was looked, and the others.

        Most sites are new to an import: it looks once it met a page that is stored. Reads the
        numbering of the sections in any case.
        """
        if not self._some_known:
            self._pages.lookup.records([])
            return pages, []
        owners = {page: _owner(page) for page in pages}
        stored, claims = self._pages.lookup.records(
            [page.loc for page in pages], [*filter(None, owners.values())]
        )
        known = [
            page for page, owner in owners.items() if stored[page.loc] or claims.get(owner, b"")
        ]
        self._some_known = bool(known)
        if not known:
            return pages, []
        gone = set(known)
        return [page for page in pages if page not in gone], known

    def _attempt(self, pages: Sequence[PlainPage], arrival: Arrival) -> list[PlainPage] | None:
        """List `pages`; return those that this cannot decide, None if one of them is stored."""
        names = {page.section or DEFAULT_SECTION for page in pages}
        numbers, _ = self._pages.number({}, names)
        rows, claims, decisions, payloads, left = [], [], [], [], []
        owners, size = set(), 0
        decided = decide_new(pages, self._began_ms, arrival, hints=self._hints)
        for page, new in zip(pages, decided, strict=True):
            if new is None or new[2] in owners or size > MOST_BYTES:
                left.append(page)
                continue
            fragment, tail, owner, claim = new
            loc, number = page.loc, numbers[page.section or DEFAULT_SECTION]
            size += len(fragment)
            rows.append((digest_of(loc), b"", tail, "P", fragment, number, 1, self._told))
            if owner:
                owners.add(owner)
                claims.append((owner, b"", claim))
            self._sequence += 1
            decisions.append((f"{arrival.ms}-{self._sequence}", loc, ADDED, True))
            payloads.append(page.dump(self._began_ms))
        if rows and not self._pages.add(rows, claims, decisions, payloads):
            return None
        return left


def _owner(page: PlainPage) -> bytes:
    return b"" if page.id is None else owner_of(NATIVE, "", page.id, "")
