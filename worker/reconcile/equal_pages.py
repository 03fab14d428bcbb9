"""Pages that are listed as their source states them: nearly all of a reconcile, found by comparing
the record that each would have with the one it has.
"""

from __future__ import annotations

from collections import Counter

from shared.config.sites.site import Site
from shared.domain.new_pages import decide_new
from shared.domain.page_record import Arrival, PageRecord, Place
from shared.domain.routing import family_of
from shared.events.plain_page import PlainPage
from shared.store.pages.page_repository import PageRepository
from worker.reconcile.statement_spool import SpooledPages


class EqualPages:
    """Finds the equal pages of one site; `began_ms` is the version of its comparison."""

    def __init__(self, site: Site, pages: PageRepository, began_ms: int) -> None:
        self._site, self._pages, self._began_ms = site, pages, began_ms

    def find(self, some: SpooledPages) -> dict[str, str]:
        """Return the pages of which `decide` would change nothing, each with the family of its
        section; perhaps not all. Raises StoreError.

        Sections with rules are left to `decide`, and so is an id of several pages here, whose
        events affect each other.
        """
        if not self._site.routing.unruled:
            return {}
        stated = [
            (page, silent)
            for page, silent in zip(some.pages, some.silent, strict=True)
            if isinstance(page, PlainPage)
        ]
        arrival = Arrival(self._began_ms, 0)
        pages = [page for page, _ in stated]
        new = [*decide_new(pages, self._began_ms, arrival, hints=self._site.hints)]
        owners = Counter(each[2] for each in new if each and each[2])
        records, claims = self._pages.lookup.records([page.loc for page in pages], [*owners])
        numbers, names = self._pages.number({})
        found = {}
        for (page, silent), decided in zip(stated, new, strict=True):
            if decided is None or not (stored := records[page.loc]):
                continue
            _, tail, owner, claim = decided
            if not PageRecord.lists_as(stored, tail):
                continue
            if owner and (owners[owner] > 1 or claims[owner][8:] != claim[8:]):
                continue
            number = Place.unpack(stored).section
            stays = page.section is None or "section" in silent
            if number in names and (stays or numbers.get(page.section or "") == number):
                found[page.loc] = names[number]
        families = self._site.limits
        return {loc: family_of(name, families) for loc, name in found.items()}
