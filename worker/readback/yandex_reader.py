"""Yandex Webmaster: its sitemaps, pages in search, pages that came or went, pages fetched.

https://yandex.com/dev/webmaster/doc/en/: the API has no question about one page. It lists up to
50,000 pages of its choice, 100 in an answer; dates are days. A page that is in none of the lists
stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from shared.config.notify.engines import YandexSettings
from shared.domain.index_status import IndexState, IndexStatus
from shared.errors import DateError
from shared.sitemap import w3c_dates
from shared.store.readback.reading_state import MOST_SITEMAPS, ReadSitemap
from worker.http.exchange import OutboundRequest, excerpt
from worker.notify.engine import Engine
from worker.readback.engine_reader import EngineReader, Spend, address, members, number, objects

PAGE = 100
"""Rows in an answer, as many as it gives."""

MOST_PAGES = 20
"""Answers read of each list: 2,000 pages."""

_ZONE = re.compile(r"[.,]([0-9]{1,3})([+-][0-9]{2}):?([0-9]{2})$", re.ASCII)


class YandexWebmasterReader(EngineReader):
    """Yandex, by the host of its settings."""

    asked: ClassVar[bool] = False

    def __init__(
        self, account: Engine, config: YandexSettings, spend: Spend = lambda: None
    ) -> None:
        super().__init__(account, spend)
        host = quote(config.host_id, safe="")
        self._host = f"{config.endpoint}/user/{config.user_id}/hosts/{host}"

    def sitemaps(self) -> list[ReadSitemap]:
        """Return the sitemaps that its robots found. Raises UnreadError, ReadingOverError."""
        found: list[ReadSitemap] = []
        after = ""
        while len(found) < MOST_SITEMAPS:
            asked = {"limit": str(PAGE)} | ({"from": after} if after else {})
            rows = objects(self._ask("sitemaps", asked).get("sitemaps"))
            found += [
                ReadSitemap(
                    address(each.get("sitemap_url")), _ms(each.get("last_access_date")),
                    number(each.get("errors_count")), None, number(each.get("urls_count")),
                    excerpt(each.get("sitemap_type")),
                )
                for each in rows
            ]  # fmt: skip
            after = address(rows[-1].get("sitemap_id")) if rows else ""
            if len(rows) < PAGE or not after:
                break
        return found

    def pages(self) -> Iterator[tuple[str, IndexStatus]]:
        """Yield the pages of its lists; what it says last of a page counts: that it is in search.

        Raises UnreadError, ReadingOverError.
        """
        for row in self._rows("indexing/samples"):
            code, crawled = number(row.get("http_code")) or 0, _ms(row.get("access_date"))
            state = IndexState.CRAWLED if 200 <= code < 300 else IndexState.EXCLUDED
            yield address(row.get("url")), IndexStatus(state, f"fetched: HTTP {code}", crawled)
        for row in self._rows("search-urls/events/samples"):
            if row.get("event") == "REMOVED_FROM_SEARCH":
                why = excerpt(row.get("excluded_url_status")) or "removed from search"
                status = IndexStatus(IndexState.EXCLUDED, why, _ms(row.get("last_access")))
                yield address(row.get("url")), status
        for row in self._rows("search-urls/in-search/samples"):
            status = IndexStatus(IndexState.LISTED, "in search", _ms(row.get("last_access")))
            yield address(row.get("url")), status

    def _rows(self, kind: str) -> Iterator[dict[str, Any]]:
        for page in range(MOST_PAGES):
            asked = {"offset": str(page * PAGE), "limit": str(PAGE)}
            rows = objects(self._ask(kind, asked).get("samples"))
            yield from rows
            if len(rows) < PAGE:
                return

    def _ask(self, kind: str, asked: dict[str, str]) -> dict[str, Any]:
        url = f"{self._host}/{kind}"
        return members(self.read(OutboundRequest("GET", url, url), f"?{urlencode(asked)}"))


def _ms(text: object) -> int:
    """Return a time as `2016-01-01T00:00:00,000+0300` in ms since 1970; 0 if there is none."""
    try:
        return w3c_dates.epoch_ms(_ZONE.sub(r".\1\2:\3", text)) if isinstance(text, str) else 0
    except DateError:
        return 0
