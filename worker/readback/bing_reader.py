r"""Bing Webmaster: GetFeeds and GetUrlInfo.

https://learn.microsoft.com/dotnet/api/microsoft.bing.webmaster.api.interfaces.iwebmasterapi: each
answer is the member `d`; times are `\/Date(milliseconds-zone)\/`, and one that never was is the
first of the year 1. No answer says whether a page is in the index: a page that Bing fetched with
success counts as listed.
"""

from __future__ import annotations

import re
from urllib.parse import urlencode

from shared.config.sites.readback import BingReader
from shared.domain.index_status import IndexState, IndexStatus
from shared.store.readback.reading_state import ReadSitemap
from worker.http.exchange import OutboundRequest, excerpt
from worker.notify.engine import Engine
from worker.readback.engine_reader import EngineReader, Spend, address, members, number, objects

_DATE = re.compile(r"/Date\((-?[0-9]{1,14})(?:[+-][0-9]{4})?\)/", re.ASCII)


class BingWebmasterReader(EngineReader):
    """Bing, by the `site` as verified there."""

    def __init__(
        self, account: Engine, config: BingReader, site: str, spend: Spend = lambda: None
    ) -> None:
        super().__init__(account, spend)
        self._config, self._site = config, site

    def sitemaps(self) -> list[ReadSitemap]:
        """Return the feeds of the site. Raises UnreadError, ReadingOverError."""
        found = objects(self._ask("GetFeeds"))
        return [
            ReadSitemap(
                address(each.get("Url")), _ms(each.get("LastCrawled")),
                urls=number(each.get("UrlCount")), said=excerpt(each.get("Status")),
            )
            for each in found
        ]  # fmt: skip

    def page(self, loc: str) -> IndexStatus:
        """Return what Bing knows of one page. Raises UnreadError, ReadingOverError."""
        found = self._ask("GetUrlInfo", url=loc)
        info = {} if found is None else members(found)
        status, crawled = number(info.get("HttpStatus")) or 0, _ms(info.get("LastCrawledDate"))
        if status >= 300:
            return IndexStatus(IndexState.EXCLUDED, f"HTTP {status} when it was fetched", crawled)
        if crawled:
            return IndexStatus(IndexState.LISTED, "fetched", crawled)
        if _ms(info.get("DiscoveryDate")):
            return IndexStatus(IndexState.DISCOVERED, "discovered, never fetched")
        return IndexStatus(IndexState.UNKNOWN, "unknown to Bing")

    def _ask(self, method: str, **asked: str) -> object:
        shown = f"{self._config.endpoint}/{method}"
        query = urlencode({"siteUrl": self._site, **asked})
        return members(self.read(OutboundRequest("GET", shown, shown), f"&{query}")).get("d")


def _ms(text: object) -> int:
    """Return a time in ms since 1970; 0 if there is none."""
    found = _DATE.fullmatch(text) if isinstance(text, str) else None
    return max(0, int(found[1])) if found else 0
