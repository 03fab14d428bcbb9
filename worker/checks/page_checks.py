"""Checks of the listed pages, block by block.

A condition that holds for all pages of a block is tested once for the block, and page by page only
where it does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import unescape
from operator import itemgetter

from lxml import etree

from shared.clock import now_ms
from shared.config.sites.section import MAX_NEWS
from shared.config.sites.site import Site
from shared.domain.batch_state import NEWS
from shared.domain.deferral import AT
from shared.domain.translation_groups import GROUP
from shared.errors import DateError, ShardError
from shared.sitemap import blocks, fragments, shards, w3c_dates
from shared.sitemap.blocks import Block
from shared.sitemap.extensions import news
from shared.sitemap.shards import Shard
from shared.sitemap.w3c_dates import SKEW_MS, in_future
from shared.sitemap.xml_text import escape
from shared.store.operations.checks import SAMPLES
from shared.store.pages.page_scan import PageScan
from shared.store.publishing.publish_batch import PublishedFile
from worker.checks.duplicates import DuplicatePages
from worker.checks.progress import CheckTally, Step
from worker.checks.reciprocity import LINK, Reciprocity
from worker.checks.robots_check import RobotsCheck

LATE_MS = 5 * 60_000
"""Milliseconds after its expiry time at which an entry is overdue: the sweep removes it within
seconds.
"""

_ENTRY = re.compile(
    rb"<url><loc>([^<]+)</loc>"
    rb"(?:<lastmod>([0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:]{8}Z)?)</lastmod>)?(?!<lastmod>)"
)
_NEWS = b"<news:news>"
_ASKED_AT_ONCE = 100
_OVERDUE = {
    NEWS: "its news has expired", AT: "its publish_at or expires has passed",
    GROUP: "other sites were not told of this translation group", "": "its video has expired",
}  # fmt: skip
"""What is overdue, by the prefix of its name in `expiry`."""


class PageChecks:
    """Checks of every page of one site; the findings go to `tally`. Pages of other sites begin with
    one of `elsewhere`.
    """

    def __init__(
        self, site: Site, tally: CheckTally, barriers: Sequence[RobotsCheck],
        elsewhere: Sequence[str],
    ) -> None:  # fmt: skip
        self._site, self._tally, self._elsewhere = site, tally, elsewhere
        self._barriers = [each for each in barriers if not each.forbids_nothing]
        self._prefix = site.base.prefix
        self._inside = fragments.START + escape(self._prefix).encode()
        self._now_ms = now_ms()
        self._soon = w3c_dates.from_epoch_s((self._now_ms + SKEW_MS) // 1000).encode()

    def look(
        self,
        files: dict[Shard, PublishedFile],
        indexes: Iterable[str],
        listing: PageScan,
        step: Step,
    ) -> None:
        """Check every page of `files`, and whether crawlers may fetch these and the `indexes`.

        Raises StoreError, CheckError.
        """
        twice = DuplicatePages()
        try:
            with Reciprocity(self._prefix, self._elsewhere) as self._alternates:
                self._pages(files, indexes, listing, twice, step)
        finally:
            twice.close()
        self._overdue(listing)

    def _pages(
        self, files: dict[Shard, PublishedFile], indexes: Iterable[str], listing: PageScan,
        twice: DuplicatePages, step: Step,
    ) -> None:  # fmt: skip
        self._barred([self._site.base.url(name) for name in indexes], step)
        for shard, file in files.items():
            is_news = shard.section in self._site.routing.news
            name = shards.file_name(shard, self._site.form)
            self._barred([self._site.base.url(name)], step)
            if is_news and file.urls > MAX_NEWS:
                self._tally.add("news-too-many", name, f"{file.urls} URLs")
            for block in listing.published([shard])[0]:
                self._block(shard, name, block, None if is_news else twice, step)
                step(block.urls)
        for loc, times, where in twice.found(listing, step):
            named = ", ".join(shards.file_name(each, self._site.form) for each in where)
            self._tally.add("duplicate", loc or "more pages", named, times=times)
        published = (block for shard in files for block in listing.published([shard])[0])
        for loc, other, times in self._alternates.found(published, step):
            named = f"{other} does not name it" if other else ""
            self._tally.add("one-way", loc or "more pages", named, times=times)

    def _overdue(self, listing: PageScan) -> None:
        count, names = listing.overdue(self._now_ms - LATE_MS, SAMPLES)
        for number, each in enumerate(names):
            times = count - len(names) + 1 if number == len(names) - 1 else 1
            prefix = next((name for name in _OVERDUE if name and each.startswith(name)), "")
            self._tally.add("overdue", each.removeprefix(prefix), _OVERDUE[prefix], times=times)

    def _block(
        self, shard: Shard, name: str, block: Block, twice: DuplicatePages | None, step: Step
    ) -> None:
        try:
            raw = block.raw()
        except ShardError as error:
            self._tally.add("malformed", name, str(error), times=block.urls)
            return
        found = _ENTRY.findall(raw)
        self._shape(name, raw, len(found))
        if not found:
            return
        joined = b"\n".join(map(itemgetter(0), found)).decode()
        locs = (unescape(joined) if "&" in joined else joined).split("\n")
        inside = locs
        if raw.count(self._inside) != len(found):
            inside = [loc for loc in locs if loc.startswith(self._prefix)]
            for loc in set(locs).difference(inside):
                self._tally.add("wrong-host", loc, name)
        if max(map(itemgetter(1), found)) > self._soon:
            self._dates(zip(locs, map(itemgetter(1), found), strict=True), name)
        self._barred(inside, step)
        if _NEWS in raw:
            self._articles(name, raw, step)
        if LINK in raw:
            self._alternates.note(raw)
        if twice is not None:
            step(0)
            twice.note(shard, locs)

    def _shape(self, name: str, raw: bytes, found: int) -> None:
        """Check that the block is `found` well-formed entries (PROTOCOL F4, M1)."""
        pieces = raw.count(fragments.END)
        if found != pieces:
            detail = f"{pieces - found} of {pieces} entries were not written by sitemapd"
            self._tally.add("malformed", name, detail, times=abs(pieces - found))
            return
        start = fragments.urlset_start(fragments.EVERY_USE)
        parser = etree.XMLParser(resolve_entities=False, no_network=True, collect_ids=False)
        try:
            etree.fromstring(b"".join((start, raw, fragments.URLSET_END)), parser)
        except etree.XMLSyntaxError as error:
            self._tally.add("malformed", name, f"not well-formed: {error}")

    def _dates(self, pairs: Iterable[tuple[str, bytes]], name: str) -> None:
        for loc, lastmod in pairs:
            if lastmod <= self._soon:
                continue
            try:
                if in_future(lastmod.decode(), self._now_ms):
                    self._tally.add("future-lastmod", loc, lastmod.decode())
            except DateError as error:
                self._tally.add("malformed", name, f"{loc}: {error}")

    def _barred(self, locs: Sequence[str], step: Step) -> None:
        said: dict[str, str] = {}
        for barrier in self._barriers:
            suspects = barrier.suspects(locs, len(self._site.base.origin))
            for number, loc in enumerate(suspects):
                if number % _ASKED_AT_ONCE == 0:
                    step(0)
                if loc not in said and (agents := barrier.barred(loc)):
                    said[loc] = f"{', '.join(agents)}: {barrier.source}"
        for loc, why in said.items():
            self._tally.add("robots-blocked", loc, why)

    def _articles(self, name: str, raw: bytes, step: Step) -> None:
        for number, fragment in enumerate(blocks.split(raw)):
            if number % _ASKED_AT_ONCE == 0:
                step(0)
            if _NEWS not in fragment:
                continue
            entry = fragments.parse(fragment)
            assert entry.news is not None
            if news.leaves_ms(entry.news) + LATE_MS <= self._now_ms:
                said = f"{name}, published {entry.news['publication_date']}"
                self._tally.add("stale-news", entry.loc, said)
