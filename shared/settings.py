"""The configuration: one TOML file and `SITEMAPD_*` variables, read once, all faults at once."""

from __future__ import annotations

import base64
import binascii
import os
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from shared import shards
from shared.errors import ConfigError, Fault, UrlError
from shared.events import Rules
from shared.patch import DEFAULT_SECTION
from shared.shards import Limits
from shared.shrink import Rule
from shared.urls import Base

FILE = "sitemapd.toml"
WEBHOOK_PREFIX = "whsec_"
MAX_NEWS = 1_000
SMALLEST_SHARD = 16_384
"""Bytes: the fragment of one URL comes to 12.4 KB when every character has to be escaped."""


def _base_url(text: str) -> str:
    try:
        return Base.parse(text).url("")
    except UrlError as error:
        raise ValueError(error.detail) from error


def _section_name(name: str) -> str:
    if not shards.SECTION.fullmatch(name) or name in shards.RESERVED:
        raise ValueError("a section name is [a-z0-9-]{1,32}, and not sitemap, robots or atom")
    return name


def _site_name(name: str) -> str:
    if not shards.SECTION.fullmatch(name):
        raise ValueError("a site name is [a-z0-9-]{1,32}")
    return name


class Model(BaseModel):
    """Unknown keys are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Secret(Model):
    """One Standard Webhooks secret, `whsec_` and base64 of 24 to 64 bytes."""

    secret: SecretStr
    until: datetime | None = Field(None, description="no longer accepted from then on (rotation)")

    @model_validator(mode="after")
    def _decodable(self) -> Secret:
        text = self.secret.get_secret_value()
        try:
            size = len(base64.b64decode(text.removeprefix(WEBHOOK_PREFIX), validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if not text.startswith(WEBHOOK_PREFIX) or not 24 <= size <= 64:
            raise ValueError(
                "must be whsec_ and base64 of 24 to 64 bytes: `sitemapd secret` makes one"
            )
        return self

    def key(self, now: datetime) -> bytes | None:
        """The raw key, None once it has expired."""
        until = self.until
        if until is not None and now >= (until if until.tzinfo else until.replace(tzinfo=UTC)):
            return None
        return base64.b64decode(self.secret.get_secret_value().removeprefix(WEBHOOK_PREFIX))


def _secret(value: object) -> object:
    return {"secret": value} if isinstance(value, str) else value


def _token(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < 16 or not value.get_secret_value().isascii():
        raise ValueError("a token has at least 16 ASCII characters")
    return value


class Section(Model):
    """A family of pages with shards of its own."""

    news: bool = Field(False, description="Google News rules: at most 1,000 URLs per file")
    shard_urls: int | None = Field(None, ge=1, le=shards.MAX_URLS, description="URLs per file")

    @model_validator(mode="after")
    def _news_is_short(self) -> Section:
        if self.news and (self.shard_urls or 0) > MAX_NEWS:
            raise ValueError(f"shard_urls: a news file lists {MAX_NEWS} URLs at most (PROTOCOL W3)")
        return self


class Site(Model):
    """One site: where its pages are, where its files go, who may speak for it."""

    base_url: Annotated[str, AfterValidator(_base_url)] = Field(
        description="scheme, host, port (and directory) of every loc"
    )
    web_root: Path = Field(description="where the files are written; relative to the TOML file")
    secrets: tuple[Annotated[Secret, BeforeValidator(_secret)], ...] = Field(
        (), description="Standard Webhooks secrets; every one verifies, for rotation"
    )
    tokens: tuple[Annotated[SecretStr, AfterValidator(_token)], ...] = Field(
        (), description="Bearer tokens: senders without signatures, and the read API"
    )
    form: Literal["xml", "xml.gz", "encoded"] = Field("xml", description="form of shard files")
    publish_interval: float = Field(
        1.0,
        ge=0,
        le=3600,
        description="seconds between publishes under load; below 1 files are dated ahead of time",
    )
    # 500: two dozen sites that run away together are still drained as fast as they send (12,000 a
    # second on two cores), and saving 60,000 pages at once passes.
    rate: float = Field(
        500,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="events a second taken for long, two minutes' worth at once; 0: no limit",
    )
    robots: Literal["off", "edit", "create"] = Field("off", description="keep Sitemap: lines")
    pages: bool = Field(True, description="write sitemap.css and sitemap.html, for people")
    hints: bool = Field(False, description="list changefreq and priority (PROTOCOL M8)")
    shard_urls: int = Field(shards.DEFAULT_URLS, ge=1, le=shards.MAX_URLS)
    shard_bytes: int = Field(shards.MAX_BYTES, ge=SMALLEST_SHARD, le=shards.MAX_BYTES)
    index_shards: int = Field(shards.DEFAULT_INDEX, ge=1, le=shards.MAX_INDEX)
    check_interval: float = Field(
        60.0, ge=0, le=86_400, description="seconds between looks at the files; 0: never (F23)"
    )
    shrink_share: float = Field(
        0.5, ge=0, le=1, description="share of a file's pages that may go at once; 1: all (T32)"
    )
    shrink_minutes: float = Field(10.0, gt=0, le=10_080, description="what `at once` means")
    shrink_least: int = Field(50, ge=1, description="fewer pages than that may always go")
    sections: dict[Annotated[str, AfterValidator(_section_name)], Section] = Field(
        {}, description=f"`{DEFAULT_SECTION}` always exists"
    )

    @model_validator(mode="after")
    def _somebody_may_speak(self) -> Site:
        if not self.secrets and not self.tokens:
            raise ValueError("give at least one of secrets and tokens, or nobody can send events")
        return self

    @property
    def base(self) -> Base:
        """`base_url`, taken apart."""
        return Base.parse(self.base_url)

    @property
    def rules(self) -> Rules:
        """What events of this site may say."""
        return Rules(self.base, frozenset({DEFAULT_SECTION, *self.sections}))

    @property
    def shrink(self) -> Rule:
        """How much of a file may go at once."""
        return Rule.of(self.shrink_share, self.shrink_minutes, self.shrink_least)

    @property
    def limits(self) -> dict[str, Limits]:
        """How much fits into a shard, by section."""
        found = {DEFAULT_SECTION: Limits(self.shard_urls, self.shard_bytes)}
        for name, section in self.sections.items():
            urls = section.shard_urls or (MAX_NEWS if section.news else self.shard_urls)
            found[name] = Limits(urls, self.shard_bytes)
        return found


class Settings(BaseSettings):
    """Everything an administrator can set."""

    model_config = SettingsConfigDict(env_prefix="SITEMAPD_", extra="forbid", frozen=True)

    redis_url: str = Field("", description="Redis >= 7.0 or Valkey; empty: the embedded server")
    allow_loss: bool = Field(False, description="run on a Redis that may lose events")
    body_limit: int = Field(1_048_576, ge=1024, description="bytes of a request body")
    inbox_limit: int = Field(1_000_000, ge=0, description="events waiting before 503; 0: no limit")
    linger: float = Field(0.02, ge=0, le=1, description="seconds between drains under load")
    sites: dict[Annotated[str, AfterValidator(_site_name)], Site] = Field({})


def load(path: Path) -> Settings:
    """The settings in `path` and the environment (which wins); ConfigError names every fault."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(Fault(str(path), "config", f"cannot be read: {error.strerror}")) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Fault(str(path), "config", f"is not TOML: {error}")) from None
    for name in Settings.model_fields:
        if f"SITEMAPD_{name.upper()}" in os.environ:
            given.pop(name, None)
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise ConfigError(*map(_fault, error.errors(include_input=False))) from None
    except SettingsError as error:
        raise ConfigError(Fault("environment", "config", str(error))) from None
    return _absolute(settings, path.resolve().parent)


def _fault(error: Any) -> Fault:
    where = ".".join(str(part) for part in error["loc"] if part != "[key]")
    return Fault(where or "sites", "config", error["msg"].removeprefix("Value error, "))


def _absolute(settings: Settings, home: Path) -> Settings:
    sites = {
        name: site.model_copy(update={"web_root": home / site.web_root})
        for name, site in settings.sites.items()
    }
    names: dict[Path, str] = {}
    faults = []
    for name, site in sites.items():
        other = names.setdefault(site.web_root.resolve(), name)
        if other != name:
            detail = f"is the web_root of the site {other} too: they would overwrite each other"
            faults.append(Fault(f"sites.{name}.web_root", "config", detail))
    if faults:
        raise ConfigError(*faults)
    return settings.model_copy(update={"sites": sites})
