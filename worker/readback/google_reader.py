"""Google Search Console: sitemaps.list, and urlInspection.index.inspect.

https://developers.google.com/webmaster-tools/v1/api_reference_index; limits of URL Inspection:
2,000 requests a day and 600 a minute for each property.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from shared.config.sites.readback import GoogleReader
from shared.domain.index_status import IndexState, IndexStatus
from shared.errors import DateError
from shared.sitemap import w3c_dates
from shared.store.readback.reading_state import ReadSitemap
from worker.http.exchange import OutboundRequest, excerpt
from worker.notify.engine import Engine
from worker.readback.engine_reader import (
    EngineReader,
    Spend,
    address,
    members,
    number,
    objects,
    unclear,
)

_STATES = {"PASS": IndexState.LISTED, "PARTIAL": IndexState.LISTED, "FAIL": IndexState.EXCLUDED}
# A page with the verdict NEUTRAL is not in the index. Its coverageState says why: it is a sentence
# in the language asked for, and no enumeration, so that only its beginning is relied on.
_NEUTRAL = (
    ("url is unknown", IndexState.UNKNOWN), ("discovered", IndexState.DISCOVERED),
    ("crawled", IndexState.CRAWLED),
)  # fmt: skip


class SearchConsoleReader(EngineReader):
    """Google, by the property `site`."""

    def __init__(
        self, account: Engine, config: GoogleReader, site: str, spend: Spend = lambda: None
    ) -> None:
        super().__init__(account, spend)
        self._config, self._site = config, site

    def sitemaps(self) -> list[ReadSitemap]:
        """Return the sitemaps that were submitted. Raises UnreadError, ReadingOverError."""
        url = f"{self._config.endpoint}/sites/{quote(self._site, safe='')}/sitemaps"
        found = members(self.read(OutboundRequest("GET", url, url)))
        return [
            ReadSitemap(
                address(each.get("path")), _ms(each.get("lastDownloaded")),
                number(each.get("errors")), number(each.get("warnings")),
                sum(number(of.get("submitted")) or 0 for of in objects(each.get("contents"))),
                "pending" if each.get("isPending") else "",
            )
            for each in objects(found.get("sitemap"))
        ]  # fmt: skip

    def page(self, loc: str) -> IndexStatus:
        """Return the state of one page in the index. Raises UnreadError, ReadingOverError."""
        url, asked = self._config.inspection_endpoint, {
            "inspectionUrl": loc, "siteUrl": self._site, "languageCode": "en-US",
        }  # fmt: skip
        headers = {"Content-Type": "application/json"}
        request = OutboundRequest("POST", url, url, headers, json.dumps(asked).encode())
        found = members(members(self.read(request)).get("inspectionResult"))
        status = members(found.get("indexStatusResult"))
        verdict, coverage = str(status.get("verdict", "")), excerpt(status.get("coverageState"))
        if verdict not in {*_STATES, "NEUTRAL"}:
            raise unclear()
        state = _STATES.get(verdict) or next(
            (state for begin, state in _NEUTRAL if coverage.lower().startswith(begin)),
            IndexState.EXCLUDED,
        )
        return IndexStatus(state, coverage or verdict, _ms(status.get("lastCrawlTime")))


def _ms(text: object) -> int:
    """Return a time of RFC 3339 in ms since 1970; 0 if there is none."""
    try:
        return w3c_dates.epoch_ms(text) if isinstance(text, str) else 0
    except DateError:
        return 0
