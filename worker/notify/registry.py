"""Every engine a site is configured to tell, ready to be told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from shared.notify import engines
from shared.sites import Site
from worker.notify.baidu import Baidu
from worker.notify.bing import Bing
from worker.notify.contract import Allowed, Outbound, Teller
from worker.notify.crawler import Crawler
from worker.notify.google import GoogleIndexing, SearchConsole
from worker.notify.indexnow import IndexNow
from worker.notify.websub import WebSub
from worker.notify.yandex import Yandex

Sitemaps = Callable[[], Sequence[str]]


def tellers(site: Site, outbound: Outbound, sitemaps: Sitemaps) -> dict[str, Teller]:
    """The engines of `site` by name; `sitemaps` gives the addresses that robots.txt names."""
    return {
        name: _teller(site, config, outbound, sitemaps)
        for name, config in site.notify.engines.items()
    }


def _teller(site: Site, config: engines.Engine, outbound: Outbound, sitemaps: Sitemaps) -> Teller:
    may = _allowed(site, config)
    match config:
        case engines.IndexNow():
            return IndexNow(site, config, may, outbound)
        case engines.SearchConsole():
            return SearchConsole(site, config, may, outbound, sitemaps)
        case engines.GoogleIndexing():
            return GoogleIndexing(config, may, outbound)
        case engines.Bing():
            return Bing(site, config, may, outbound)
        case engines.Yandex():
            return Yandex(config, may, outbound)
        case engines.Baidu():
            return Baidu(site, config, may, outbound)
        case engines.WebSub():
            return WebSub(site, may, outbound)
        case engines.Crawler():
            return Crawler(config, may, outbound, sitemaps)
    raise AssertionError(f"no teller for {type(config).__name__}")


def _allowed(site: Site, config: engines.Engine) -> Allowed:
    """Its own hosts and no other's, of those that may be asked at all (RELIABILITY T22)."""
    addresses = (*config.addresses, *([site.hub] if isinstance(config, engines.WebSub) else []))
    own = {urlsplit(address).hostname or "" for address in addresses}
    return Allowed(site.notify.allowed & own, config.allow_private, config.allow_http)
