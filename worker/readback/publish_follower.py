"""Pages that were published, taken from the revisions as they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import redis

from shared.config.sites.site import Site
from shared.domain.index_status import PublishedPage
from shared.domain.page_record import Arrival, PageRecord
from shared.sitemap import blocks, fragments
from shared.store.pages.changes import unpacked
from shared.store.pages.lookup import PageLookup
from shared.store.pages.page_scan import PageScan
from shared.store.publishing.revisions import Revision, Revisions
from shared.store.readback.page_chains import PageChains
from shared.store.readback.reading_state import ReadingState

REVISIONS = 50
"""Revisions followed at once."""

SAMPLE = 100
"""Pages followed of a file that changed in more lines than a revision keeps."""

_LOCS = 500


class PublishFollower:
    """Follows what one site publishes."""

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._site, self._engines = site, [*site.readback.engines]
        self._revisions, self._scan = Revisions(client, name), PageScan(client, name)
        self._lookup = PageLookup.of(client, name, site)
        self._chains = PageChains(client, name, site.readback.pages)
        self._state = ReadingState(client, name)

    def look(self) -> bool:
        """Follow the pages of the next revisions; return True if there may be more."""
        cursor = self._state.cursor()
        after = Arrival.of(cursor) if cursor else Arrival(0, -1)
        since = self._revisions.since(after.ms)
        found = [*islice((each for each in since if Arrival.of(each.at) > after), REVISIONS)]
        listed, gone = dict[str, PublishedPage](), set[str]()
        for revision in found:
            section = self._site.sections.get(revision.shard.section)
            if section is None or not section.news:  # its pages are listed in another file, too
                self._take(revision, listed, gone)
        pages = self._current(listed)
        self._chains.follow(pages, self._engines)
        unlisted = (gone | listed.keys()) - pages.keys()
        live = {loc for loc, page in self._records([*unlisted]).items() if page and page.live}
        self._chains.drop(unlisted - live, self._engines)
        if found:
            self._state.move(found[-1].at)
        return len(found) == REVISIONS

    def _take(self, revision: Revision, listed: dict[str, PublishedPage], gone: set[str]) -> None:
        section, at_ms = revision.shard.section, revision.at_ms
        if revision.lines is None:
            for loc in self._sample(revision):
                # A change of so many lines is an import, as a rule: pages older than the sitemap.
                listed[loc] = PublishedPage(section, at_ms, at_ms, new=True)
        for line in revision.lines or ():
            loc = line.loc
            if line.after is None:
                listed.pop(loc, None)
                gone.add(loc)
            else:
                listed[loc] = PublishedPage(section, at_ms, at_ms, new=line.before is None)

    def _sample(self, revision: Revision) -> Iterable[str]:
        if revision.file is None:
            return []
        (stored,) = self._scan.published([revision.shard])
        lines = [line for block in stored for line in blocks.split(block.raw())]
        return [fragments.loc_of(line) for line in lines[:: max(1, len(lines) // SAMPLE)][:SAMPLE]]

    def _current(self, listed: dict[str, PublishedPage]) -> dict[str, PublishedPage]:
        """Return those of `listed` that are still, with the version of their event."""
        found = {}
        for loc, record in self._records([*listed]).items():
            if record is not None and record.live:
                page = listed[loc]
                found[loc] = page._replace(changed_ms=min(changed_ms(record), page.published_ms))
        return found

    def published(self, loc: str) -> PublishedPage | None:
        """Return the page `loc` as published at the time of its version, which is known of every
        listed page; None if it is not listed.
        """
        record = self._lookup.find(loc)
        shard = self._lookup.shard_of(record) if record is not None and record.live else None
        if record is None or shard is None:
            return None
        at_ms = changed_ms(record)
        return PublishedPage(shard.section, at_ms, at_ms, new=False)

    def _records(self, locs: Sequence[str]) -> dict[str, PageRecord | None]:
        found: dict[str, PageRecord | None] = {}
        for start in range(0, len(locs), _LOCS):
            found |= unpacked(self._lookup.records(locs[start : start + _LOCS])[0])
        return found


def changed_ms(record: PageRecord) -> int:
    """Return the version of the event that changed a page last, in ms since 1970."""
    return record.stamp >> 16
