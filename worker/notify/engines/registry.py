"""Registry of search engines: configured settings to engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from shared.config.notify import cdns, engines
from shared.config.sites.site import Site
from worker.http.exchange import AllowedHosts, Outbound
from worker.notify.engine import Engine
from worker.notify.engines.baidu import Baidu
from worker.notify.engines.bing import Bing
from worker.notify.engines.cdn import Cloudflare, CloudFront, Fastly, Purge
from worker.notify.engines.crawler import Crawler
from worker.notify.engines.google import GoogleIndexing, SearchConsole
from worker.notify.engines.indexnow import IndexNow
from worker.notify.engines.websub import WebSub
from worker.notify.engines.yandex import Yandex

Sitemaps = Callable[[], Sequence[str]]


def engine_apis(site: Site, outbound: Outbound, sitemaps: Sitemaps) -> dict[str, Engine]:
    """Return the engines of `site` by name; `sitemaps` returns the addresses that robots.txt
    names.
    """
    return {
        name: _api(site, config, outbound, sitemaps) for name, config in site.notify.engines.items()
    }


def _api(
    site: Site, config: engines.EngineSettings, outbound: Outbound, sitemaps: Sitemaps
) -> Engine:
    may = _allowed(site, config)
    match config:
        case engines.IndexNowSettings():
            return IndexNow(site, config, may, outbound)
        case engines.SearchConsoleSettings():
            return SearchConsole(site, config, may, outbound, sitemaps)
        case engines.GoogleIndexingSettings():
            return GoogleIndexing(config, may, outbound)
        case engines.BingSettings():
            return Bing(site, config, may, outbound)
        case engines.YandexSettings():
            return Yandex(config, may, outbound)
        case engines.BaiduSettings():
            return Baidu(site, config, may, outbound)
        case engines.WebSubSettings():
            return WebSub(site, may, outbound)
        case cdns.CdnSettings():
            return _cdn(config, may, outbound)
        case engines.CrawlerSettings():
            return Crawler(config, may, outbound, sitemaps)
    raise AssertionError(f"no API for {type(config).__name__}")


def _cdn(config: cdns.CdnSettings, may: AllowedHosts, outbound: Outbound) -> Engine:
    match config:
        case cdns.CloudflareSettings():
            return Cloudflare(config, may, outbound)
        case cdns.FastlySettings():
            return Fastly(config, may, outbound)
        case cdns.CloudFrontSettings():
            return CloudFront(config, may, outbound)
        case cdns.PurgeSettings():
            return Purge(config, may, outbound)
    raise AssertionError(f"no API for {type(config).__name__}")


def _allowed(site: Site, config: engines.EngineSettings) -> AllowedHosts:
    """Return the engine's own hosts, of those that may be asked at all (RELIABILITY T22)."""
    addresses = (
        *config.addresses,
        *([site.hub] if isinstance(config, engines.WebSubSettings) else []),
        *([site.base.prefix] if isinstance(config, cdns.PurgeSettings) else []),
    )
    own = {urlsplit(address).hostname or "" for address in addresses}
    return AllowedHosts(site.notify.allowed & own, config.allow_private, config.allow_http)
