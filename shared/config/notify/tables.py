"""The tables `[sites.X.notify.ENGINE]`: the search engines that a site notifies of its changes.

Every host of a request is listed here or named by the administrator (RELIABILITY T22). Retired
pings are refused with their replacements (PROTOCOL U1, U2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from shared.config.locations import host
from shared.config.notify import retired_pings
from shared.config.notify.cdns import (
    CdnSettings,
    CloudflareSettings,
    CloudFrontSettings,
    FastlySettings,
    PurgeSettings,
)
from shared.config.notify.engines import (
    SITEMAP,
    BaiduSettings,
    BingSettings,
    CrawlerSettings,
    EngineSettings,
    GoogleIndexingSettings,
    IndexNowSettings,
    SearchConsoleSettings,
    WebSubSettings,
    YandexSettings,
)
from shared.sitemap.shards import NUMBERED
from shared.sitemap.urls import Base

KNOWN_HOSTS = frozenset({
    "api.indexnow.org", "www.bing.com", "bing.com", "yandex.com", "search.seznam.cz",
    "searchadvisor.naver.com", "indexnow.yep.com", "indexnow.amazonbot.amazon",
    "www.googleapis.com", "searchconsole.googleapis.com", "indexing.googleapis.com",
    "oauth2.googleapis.com", "ssl.bing.com", "api.webmaster.yandex.net", "data.zz.baidu.com",
    "pubsubhubbub.appspot.com", "pubsubhubbub.superfeedr.com", "websubhub.com",
    "switchboard.p3k.app", "api.cloudflare.com", "api.fastly.com", "cloudfront.amazonaws.com",
})  # fmt: skip
"""Hosts of engines and hubs; others are named in `hosts`."""


class NotifySettings(BaseModel):
    """The table `[sites.X.notify]`, with a table for each engine that is notified."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    hosts: frozenset[Annotated[str, AfterValidator(host)]] = Field(
        default=frozenset(), description="additional hosts to which requests may be sent"
    )
    indexnow: IndexNowSettings | None = None
    search_console: SearchConsoleSettings | None = None
    google_indexing: GoogleIndexingSettings | None = None
    bing: BingSettings | None = None
    yandex: YandexSettings | None = None
    baidu: BaiduSettings | None = None
    websub: WebSubSettings | None = None
    crawler: CrawlerSettings | None = None
    cloudflare: CloudflareSettings | None = None
    fastly: FastlySettings | None = None
    cloudfront: CloudFrontSettings | None = None
    purge: PurgeSettings | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_pings(cls, given: object) -> object:
        if isinstance(given, Mapping):
            for name in given:
                if isinstance(name, str) and (instead := retired_pings.named(name)):
                    raise ValueError(f"{name}: {instead}")
        return given

    @property
    def engines(self) -> dict[str, EngineSettings]:
        """The engines that are configured, by name."""
        return {name: found for name, found in self if isinstance(found, EngineSettings)}

    @property
    def of_pages(self) -> tuple[str, ...]:
        """The names of those that are told of pages: search engines."""
        return tuple(n for n, each in self.engines.items() if not isinstance(each, CdnSettings))

    @property
    def of_files(self) -> tuple[str, ...]:
        """The names of those that are told of files: content delivery networks."""
        return tuple(n for n, each in self.engines.items() if isinstance(each, CdnSettings))

    @property
    def allowed(self) -> frozenset[str]:
        """The hosts that requests may go to."""
        return KNOWN_HOSTS | {each.lower() for each in self.hosts}

    def faults(self, base: Base, hub: str, sections: Iterable[str], *, feed: bool) -> list[str]:
        """Faults of this table for a site with this base, hub and these sections."""
        found = [fault for name, engine in self.engines.items() for fault in _barred(name, engine)]
        own = urlsplit(base.origin).hostname
        if self.purge is not None and not self.purge.addresses and own not in self.allowed:
            found.append(f"notify.purge: add {own} to notify.hosts: its caches are asked")
        addresses = [(n, a) for n, engine in self.engines.items() for a in engine.addresses]
        if self.websub is not None and hub:
            addresses.append(("websub", hub))
            found += _plain("websub", self.websub, hub)
        found += [
            f"notify.{name}: {asked} is not a host of an engine: add it to notify.hosts"
            for name, address in addresses
            if (asked := urlsplit(address.replace(SITEMAP, "")).hostname) not in self.allowed
        ]
        if self.websub is not None and not (feed and hub):
            found.append('notify.websub: needs feed = true and hub = "https://..."')
        if self.google_indexing is not None:
            unknown = sorted(set(self.google_indexing.sections) - set(sections))
            found += [
                f"notify.google_indexing.sections: {name} is not a section of this site"
                for name in unknown
            ]
        return found + (_key_faults(self.indexnow, base, sections) if self.indexnow else [])


def _barred(name: str, engine: EngineSettings) -> list[str]:
    return [fault for address in engine.addresses for fault in _plain(name, engine, address)]


def _plain(name: str, engine: EngineSettings, address: str) -> list[str]:
    if not address.startswith("http:") or engine.allow_http or engine.allow_private:
        return []
    if isinstance(engine, BaiduSettings):
        detail = (
            "the address of Baidu has no TLS: set plain_http = true to send the token without it"
        )
        return [f"notify.{name}: {detail}"]
    return [
        f"notify.{name}: {address.partition('?')[0]}: use https://, or set allow_private = true"
    ]


def _key_faults(engine: IndexNowSettings, base: Base, sections: Iterable[str]) -> list[str]:
    found = []
    if engine.key_location is not None:
        directory = engine.key_location.rpartition("/")[0] + "/"
        if not base.prefix.startswith(directory):
            found.append(
                "notify.indexnow.key_location: covers only URLs in its own directory and "
                "below (PROTOCOL U4): {base.prefix} is outside"
            )
    elif NUMBERED.search(engine.key) and engine.key.startswith(
        tuple(f"{name}-" for name in ("sitemap", *sections))
    ):
        found.append(
            "notify.indexnow.key: the key file would have the name of a sitemap: use another key"
        )
    return found
