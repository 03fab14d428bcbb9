"""Settings of the content delivery networks that are told to purge published files."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from shared.config.notify.engines import Address, EngineSettings

URL = "{url}"


def _template(text: str) -> str:
    if text == URL:
        return text
    parts = urlsplit(text)
    plain = text.isascii() and text.isprintable() and " " not in text
    if text.count(URL) != 1 or parts.scheme not in {"http", "https"} or not plain:
        raise ValueError(f"must be {URL}, or an address with {URL}: https://cdn.example/?u={URL}")
    if not parts.hostname or URL in parts.netloc:
        raise ValueError("must name its host")
    return text


class CdnSettings(EngineSettings):
    """Settings common to all networks: they are told of files and not of pages."""

    daily: int = Field(100_000, ge=1)
    debounce_minutes: float = Field(0, ge=0, le=10_080)


class CdnApiSettings(CdnSettings):
    """Settings of a network with an API."""

    endpoint: Address

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.endpoint,)


class CloudflareSettings(CdnApiSettings):
    """Cloudflare: purge by URL."""

    zone: str = Field(pattern=r"^[0-9a-f]{32}$", description="id of the zone")
    token: SecretStr = Field(description="API token with the permission Cache Purge")
    endpoint: Address = "https://api.cloudflare.com/client/v4"


class FastlySettings(CdnApiSettings):
    """Fastly: purge by URL."""

    token: SecretStr = Field(description="API token with the scope purge_select")
    soft: bool = Field(True, description="mark as stale, and serve it while the new one is fetched")
    endpoint: Address = "https://api.fastly.com"


class CloudFrontSettings(CdnApiSettings):
    """Amazon CloudFront: invalidations. A thousand paths a month are free."""

    distribution: str = Field(pattern=r"^[A-Z0-9]{5,32}$", description="id of the distribution")
    access_key_id: SecretStr = Field(description="with cloudfront:CreateInvalidation")
    secret_access_key: SecretStr = Field(description="env:NAME or file:/path")
    endpoint: Address = "https://cloudfront.amazonaws.com"
    debounce_minutes: float = Field(5, ge=0, le=10_080)


class PurgeSettings(CdnSettings):
    """Any cache: one request for each file, as Varnish and nginx take it."""

    url: Annotated[str, AfterValidator(_template)] = Field(
        URL, description=f"{URL}: the file's own address; or an address with {URL} in it"
    )
    method: Literal["PURGE", "POST", "GET", "DELETE"] = "PURGE"
    token: SecretStr = Field("", validate_default=True, description="Bearer token, if it asks one")

    @property
    def addresses(self) -> tuple[str, ...]:
        return () if self.url == URL else (self.url.replace(URL, ""),)
