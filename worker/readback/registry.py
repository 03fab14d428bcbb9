"""Registry of engines that are read: configured settings to readers."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from shared.config.notify import engines
from shared.config.sites.readback import BingReader, GoogleReader, ReaderSettings, YandexReader
from shared.config.sites.site import Site
from worker.http.exchange import AllowedHosts, Outbound
from worker.notify.engines.bing import Bing
from worker.notify.engines.google import SearchConsole
from worker.notify.engines.yandex import Yandex
from worker.readback.bing_reader import BingWebmasterReader
from worker.readback.engine_reader import EngineReader, Spend
from worker.readback.google_reader import SearchConsoleReader
from worker.readback.yandex_reader import YandexWebmasterReader


def engine_readers(
    site: Site, outbound: Outbound, spend: Mapping[str, Spend]
) -> dict[str, EngineReader]:
    """Return the readers of `site` by engine; each calls its `spend` before a request."""
    return {
        name: _reader(site, config, outbound, spend[name])
        for name, config in site.readback.engines.items()
    }


def _reader(site: Site, config: ReaderSettings, outbound: Outbound, spend: Spend) -> EngineReader:
    account = config.account(site.notify)
    assert account is not None  # the settings are valid
    own = {urlsplit(url).hostname or "" for url in (*config.addresses, *account.addresses)}
    may = AllowedHosts(site.notify.allowed & own, config.allow_private)
    match config, account:
        case GoogleReader(), engines.SearchConsoleSettings():
            told = SearchConsole(site, account, may, outbound, lambda: ())
            return SearchConsoleReader(told, config, account.property or site.base_url, spend)
        case BingReader(), engines.BingSettings():
            asked = account.site or site.base.origin
            return BingWebmasterReader(Bing(site, account, may, outbound), config, asked, spend)
        case YandexReader(), engines.YandexSettings():
            return YandexWebmasterReader(Yandex(account, may, outbound), account, spend)
    raise AssertionError(f"no reader for {type(config).__name__}")
