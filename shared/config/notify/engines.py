"""Settings of the search engines that can be notified of changes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator

from shared.config import locations
from shared.config.locations import HOST
from shared.config.notify import retired_pings
from shared.errors import CredentialError

KEY = re.compile(r"[A-Za-z0-9-]{8,128}", re.ASCII)
"""Form of an IndexNow key (PROTOCOL U4)."""

SITEMAP = "{sitemap}"


def _address(text: str) -> str:
    parts = urlsplit(text)
    try:
        port = parts.port or 1
    except ValueError:
        port = 0
    plain = text.isascii() and text.isprintable() and not set(" \\@?#") & set(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port or not plain:
        raise ValueError(
            "must be an address of the form https://host/path, without query or fragment"
        )
    if instead := retired_pings.retired(parts.hostname, parts.path):
        raise ValueError(instead)
    return text


def _template(text: str) -> str:
    if text.count(SITEMAP) != 1 or SITEMAP not in text.partition("?")[2] or "#" in text:
        raise ValueError(
            f"must contain {SITEMAP} exactly once, in the query: ...?sitemap={SITEMAP}"
        )
    _address(text.partition("?")[0])
    return text


def _verified(text: str) -> str:
    """Check a site as it is verified at an engine: its address, or the name of its host."""
    if text and not locations.http_address(text) and not ("." in text and HOST.fullmatch(text)):
        raise ValueError(
            "must be the site as verified with this engine, e.g. https://www.example.com"
        )
    return _address(text) if "://" in text else text


def property_of(text: str) -> str:
    """Return `text` if it can be a property of Search Console, or empty. Raises ValueError."""
    domain = text.removeprefix("sc-domain:")
    if domain == text:
        return _address(text) if text else text
    if not HOST.fullmatch(domain):
        raise ValueError("must be sc-domain:example.com or the URL of the property")
    return text


def _credentials(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text.startswith(("file:", "env:")) and not text.lstrip().startswith("{"):
        raise ValueError("must be file:/path or env:NAME with the JSON key of the service account")
    return value


Address = Annotated[str, AfterValidator(_address)]
Verified = Annotated[str, AfterValidator(_verified)]
Template = Annotated[str, AfterValidator(_template)]


def secret_of(given: SecretStr) -> str:
    """The secret itself, or the one that `env:NAME` or `file:/path` names.

    It is read on use, by the process that uses it: the web process need not have access. Raises
    CredentialError, whose message repeats no secret.
    """
    kind, _, rest = given.get_secret_value().partition(":")
    if kind == "env":
        found = os.environ.get(rest, "")
    elif kind == "file":
        try:
            found = Path(rest).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise CredentialError(f"the credentials in {rest} cannot be read: {reason}") from None
    else:
        found = given.get_secret_value()
    if not found.strip():
        where = f"{kind}:{rest}" if kind in {"env", "file"} else "the configuration"
        raise CredentialError(f"the credentials in {where} are empty")
    return found.strip()


class EngineSettings(BaseModel):
    """Settings common to all engines."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    daily: int = Field(
        10_000,
        ge=1,
        description="URLs a day (UTC) at most; search_console, websub and crawler: requests",
    )
    debounce_minutes: float = Field(
        10,
        ge=0,
        le=10_080,
        description="minutes between two notifications about one URL (PROTOCOL U7)",
    )
    allow_private: bool = Field(
        False, description="allow a host in a private network, and http:// addresses"
    )

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses that requests may go to."""
        return ()

    @property
    def allow_http(self) -> bool:
        """True if requests may go over the open internet without TLS."""
        return False


class IndexNowSettings(EngineSettings):
    """IndexNow: Bing, Yandex, Seznam, Naver, Yep, Amazon (PROTOCOL U3-U8)."""

    key: str = Field(description="8 to 128 of [A-Za-z0-9-]; `sitemapd notify key` generates one")
    key_location: Address | None = Field(
        None, description="URL of the key file, if you serve it yourself"
    )
    endpoints: tuple[Address, ...] = Field(
        ("https://api.indexnow.org/indexnow",), min_length=1,
        description="tried in order until one accepts; engines of IndexNow share URLs",
    )  # fmt: skip

    @field_validator("key")
    @classmethod
    def _key(cls, key: str) -> str:
        if not KEY.fullmatch(key):
            raise ValueError("8 to 128 of [A-Za-z0-9-] (PROTOCOL U4): `sitemapd notify key`")
        return key

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.endpoints


class BingSettings(EngineSettings):
    """Bing Webmaster: SubmitUrlBatch."""

    key: SecretStr = Field(description="API key of Bing Webmaster Tools")
    site: Verified = Field("", description="site as verified there; empty: the origin of base_url")
    endpoint: Address = "https://ssl.bing.com/webmaster/api.svc/json/SubmitUrlbatch"

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.endpoint,)


class YandexSettings(EngineSettings):
    """Yandex Webmaster: the recrawl queue, one URL per request."""

    token: SecretStr = Field(description="OAuth token with the permission to manage sites")
    user_id: int = Field(ge=1, description="id of the user who owns the token")
    host_id: str = Field(pattern=r"^https?:[a-z0-9.-]+:[0-9]+$", description="https:HOST:443")
    endpoint: Address = "https://api.webmaster.yandex.net/v4"
    daily: int = Field(100, ge=1)

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.endpoint,)


class BaiduSettings(EngineSettings):
    """Baidu's push interface: added and changed pages."""

    token: SecretStr = Field(description="token of the push API")
    site: Verified = Field("", description="site as verified there; empty: the origin of base_url")
    endpoint: Address = "http://data.zz.baidu.com/urls"
    plain_http: bool = Field(
        False, description="send the token without TLS: Baidu documents only an http:// address"
    )

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.endpoint,)

    @property
    def allow_http(self) -> bool:
        return self.plain_http


class GoogleSettings(EngineSettings):
    """Settings common to both interfaces of Google."""

    credentials: Annotated[SecretStr, AfterValidator(_credentials)] = Field(
        description="the service account's JSON: file:/path, env:NAME"
    )
    token_endpoint: Address = "https://oauth2.googleapis.com/token"  # noqa: S105  # an address
    endpoint: Address

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.endpoint, self.token_endpoint)


class SearchConsoleSettings(GoogleSettings):
    """Google Search Console: sitemaps.submit."""

    property: Annotated[str, AfterValidator(property_of)] = Field(
        "", description="sc-domain:example.com or a URL; empty: base_url"
    )
    endpoint: Address = "https://www.googleapis.com/webmasters/v3"
    daily: int = Field(50, ge=1)
    debounce_minutes: float = Field(60, ge=0, le=10_080)


class GoogleIndexingSettings(GoogleSettings):
    """Google Indexing API: job postings and livestreams, nothing else."""

    sections: dict[str, Literal["JobPosting", "BroadcastEvent"]] = Field(
        min_length=1, description="section -> type of its pages; Google accepts only these types"
    )
    endpoint: Address = "https://indexing.googleapis.com/v3/urlNotifications:publish"
    daily: int = Field(200, ge=1)


class WebSubSettings(EngineSettings):
    """WebSub: the site's `hub` is notified that the feeds changed."""

    daily: int = Field(1_000, ge=1)
    debounce_minutes: float = Field(1, ge=0, le=10_080)


class CrawlerSettings(EngineSettings):
    """A private crawler: GET of an address that contains the sitemap's address."""

    url: Template = Field(description=f"https://crawler.example/?sitemap={SITEMAP}")
    daily: int = Field(1_000, ge=1)

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.url,)
