"""A private crawler: GET of an address that contains that of the sitemap (PROTOCOL U1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import quote

from shared.config.notify import engines
from worker.http.exchange import AllowedHosts, Outbound, OutboundRequest
from worker.notify.engine import Engine, NotifiedPage


class Crawler(Engine):
    """A private crawler, notified of the sitemaps that robots.txt names."""

    most, whole = 10_000, True

    def __init__(
        self,
        config: engines.CrawlerSettings,
        allowed: AllowedHosts,
        outbound: Outbound,
        sitemaps: Callable[[], Sequence[str]],
    ) -> None:
        super().__init__(allowed, outbound)
        self._template, self._sitemaps = config.url, sitemaps

    @property
    def endpoints(self) -> Sequence[str]:
        """The one endpoint, without its query."""
        return (self._template.partition("?")[0],)

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:  # noqa: ARG002
        """Return a GET for each sitemap, its address encoded as the protocol says: %3A, %2F."""
        encoded = (quote(sitemap, safe="") for sitemap in self._sitemaps())
        urls = [self._template.replace(engines.SITEMAP, sitemap) for sitemap in encoded]
        return [OutboundRequest("GET", url, url) for url in urls]
