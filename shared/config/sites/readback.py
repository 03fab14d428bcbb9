"""The table `[sites.X.readback]`: engines that are asked which published pages they know."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from shared.config.credentials import ConfigModel
from shared.config.notify import engines
from shared.config.notify.engines import Address
from shared.config.notify.tables import NotifySettings

GOOGLE_DAILY = 2_000
"""URL inspections that Google allows a property each day; 600 of them in a minute."""


class ReaderSettings(ConfigModel):
    """Settings common to all engines that are read."""

    daily: int = Field(500, ge=1, description="requests a day (UTC) at most")
    per_minute: int = Field(30, ge=6, le=600, description="pages asked about in a minute at most")
    allow_private: bool = Field(
        False, description="allow a host in a private network, and http:// addresses"
    )

    @property
    @abstractmethod
    def addresses(self) -> tuple[str, ...]:
        """All addresses that requests may go to."""

    @abstractmethod
    def account(self, notify: NotifySettings) -> engines.EngineSettings | None:
        """Return the settings of the notified engine with the credentials to be used; None if there
        are none, neither here nor there.
        """


class GoogleReader(ReaderSettings):
    """Google Search Console: the sitemaps, and URL Inspection."""

    daily: int = Field(1_000, ge=1, le=GOOGLE_DAILY, description="requests a day at most")
    credentials: SecretStr = Field(
        "", validate_default=True,
        description="the service account's JSON: file:/path, env:NAME; empty: search_console's",
    )  # fmt: skip
    token_endpoint: Address | None = Field(
        None, description="by default that of search_console, or Google's"
    )
    endpoint: Address = "https://www.googleapis.com/webmasters/v3"
    inspection_endpoint: Address = (
        "https://searchconsole.googleapis.com/v1/urlInspection/index:inspect"
    )

    @property
    def addresses(self) -> tuple[str, ...]:
        own = (self.endpoint, self.inspection_endpoint)
        return (*own, self.token_endpoint) if self.token_endpoint else own

    # After the decorator of that name.
    property: Annotated[str, AfterValidator(engines.property_of)] = Field(
        "", description="sc-domain:example.com or a URL; empty: search_console's, or base_url"
    )

    def account(self, notify: NotifySettings) -> engines.SearchConsoleSettings | None:
        """Return the settings of Search Console with the credentials to be used."""
        told = notify.search_console
        given = self.credentials if self.credentials.get_secret_value() else None
        if (key := given or (told.credentials if told else None)) is None:
            return None
        token = self.token_endpoint or (told.token_endpoint if told else None)
        return engines.SearchConsoleSettings.model_validate({
            "credentials": key, "endpoint": self.endpoint, "allow_private": self.allow_private,
            "property": self.property or (told.property if told else ""),
            **({"token_endpoint": token} if token else {}),
        })  # fmt: skip


class BingReader(ReaderSettings):
    """Bing Webmaster: the feeds, and GetUrlInfo."""

    key: SecretStr = Field(
        "", validate_default=True, description="API key; empty: that of notify.bing"
    )
    site: engines.Verified = Field("", description="site as verified there; empty: notify.bing's")
    endpoint: Address = "https://ssl.bing.com/webmaster/api.svc/json"

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.endpoint,)

    def account(self, notify: NotifySettings) -> engines.BingSettings | None:
        """Return the settings of Bing with the key to be used."""
        told = notify.bing
        given = self.key if self.key.get_secret_value() else None
        if (key := given or (told.key if told else None)) is None:
            return None
        return engines.BingSettings.model_validate({
            "key": key, "site": self.site or (told.site if told else ""),
            "endpoint": self.endpoint, "allow_private": self.allow_private,
        })  # fmt: skip


class YandexReader(ReaderSettings):
    """Yandex Webmaster: the sitemaps, pages in search, pages that came or went, pages fetched."""

    token: SecretStr = Field(
        "", validate_default=True, description="OAuth token; empty: that of notify.yandex"
    )
    user_id: int = Field(0, ge=0, description="id of the token's owner; 0: notify.yandex's")
    host_id: str = Field(
        "", pattern=r"^(https?:[a-z0-9.-]+:[0-9]+)?$", description="empty: notify.yandex's"
    )
    endpoint: Address = "https://api.webmaster.yandex.net/v4"

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.endpoint,)

    def account(self, notify: NotifySettings) -> engines.YandexSettings | None:
        """Return the settings of Yandex with the token to be used."""
        told = notify.yandex
        given = self.token if self.token.get_secret_value() else None
        token = given or (told.token if told else None)
        user = self.user_id or (told.user_id if told else 0)
        host = self.host_id or (told.host_id if told else "")
        if token is None or not user or not host:
            return None
        return engines.YandexSettings.model_validate({
            "token": token, "user_id": user, "host_id": host, "endpoint": self.endpoint,
            "allow_private": self.allow_private,
        })  # fmt: skip


class ReadbackSettings(ConfigModel):
    """The table `[sites.X.readback]`, with a table for each engine that is read; off without."""

    pages: int = Field(
        10_000, ge=10, le=100_000,
        description="published pages that are followed; the oldest are dropped",
    )  # fmt: skip
    first_minutes: float = Field(
        30, ge=0, le=10_080, allow_inf_nan=False,
        description="minutes after its publish until an engine is first asked about a page",
    )  # fmt: skip
    again_minutes: float = Field(
        60, ge=1, le=10_080, allow_inf_nan=False,
        description="minutes until it is asked about an unknown page again; then ever longer",
    )  # fmt: skip
    sitemaps_hours: float = Field(
        6, gt=0, le=168, allow_inf_nan=False,
        description="hours between two readings of an engine's sitemaps, and of Yandex's lists",
    )  # fmt: skip
    unknown_hours: float = Field(
        72, ge=0, le=8_784, allow_inf_nan=False,
        description="hours after its publish from which on an unknown page is listed and counted",
    )  # fmt: skip
    unknown_pages: int = Field(
        10, ge=1, description="so many such pages at one engine are a concern, and alerted of"
    )
    google: GoogleReader | None = None
    bing: BingReader | None = None
    yandex: YandexReader | None = None

    @property
    def engines(self) -> dict[str, ReaderSettings]:
        """The engines that are read, by name."""
        return {name: found for name, found in self if isinstance(found, ReaderSettings)}

    def faults(self, notify: NotifySettings) -> Iterator[str]:
        """Yield the faults of this table for a site with these notifications."""
        for name, reader in self.engines.items():
            if reader.account(notify) is None:
                yield f"readback.{name}: needs credentials, here or in notify.{_TOLD[name]}"
            for address in reader.addresses:
                host = urlsplit(address).hostname
                if host not in notify.allowed:
                    yield f"readback.{name}: {host} is no host of an engine: add it to notify.hosts"
                if address.startswith("http:") and not reader.allow_private:
                    yield f"readback.{name}: {address}: use https://, or set allow_private = true"


_TOLD = {"google": "search_console", "bing": "bing", "yandex": "yandex"}
