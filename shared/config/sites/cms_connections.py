"""Settings of a CMS connection: its secrets, permalinks, sections and subscriptions."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from shared.config.standard_secret import standard_key
from shared.errors import UrlError
from shared.events import permalinks
from shared.sitemap import urls
from shared.sitemap.urls import Base

LEAST_SECRET = 16
MOST_TOPICS = 100

STANDARD = ("wordpress", "wagtail", "payload", "cloudevents")
"""Senders that sign by Standard Webhooks: the secrets and tokens of the site verify them too."""

SOURCES = (
    *STANDARD, "contentful", "datocms", "directus", "drupal", "ghost", "github", "prismic",
    "sanity", "shopify", "storyblok", "strapi", "webflow", "websub", "woocommerce",
)  # fmt: skip
"""Every sender that has an adapter; webhook/sources/registry.py holds them."""

_OF_HUBS = ("topics", "hub", "callback", "allow_private")
_BEARER = ("directus", "strapi")
_WITH_LOCALES = ("contentful",)


def _name(name: str) -> str:
    if name not in SOURCES:
        raise ValueError(f"not a supported CMS; supported: {', '.join(sorted(SOURCES))}")
    return name


SourceName = Annotated[str, AfterValidator(_name)]


def _secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if len(text) < LEAST_SECRET or not (text.isascii() and text.isprintable()):
        raise ValueError(f"must have at least {LEAST_SECRET} printable ASCII characters")
    return value


def absolute_url(text: str) -> str:
    """The canonical form of an absolute URL of http or https. Raises ValueError."""
    try:
        return urls.absolute(text)
    except UrlError as error:
        raise ValueError(error.detail) from error


def optional_url(text: str) -> str:
    """Like `absolute_url`; an empty text stays empty. Raises ValueError."""
    return absolute_url(text) if text else ""


def base_url(text: str) -> str:
    """The canonical form of the URL of a directory, with its final slash. Raises ValueError."""
    try:
        return urls.Base.parse(text).prefix
    except UrlError as error:
        raise ValueError(error.detail) from error


def _origin(text: str) -> str:
    if urlsplit(text).path.strip("/"):
        raise ValueError("must be an origin of the form https://host, without a path")
    return text.rstrip("/")


def _several(value: object) -> object:
    return (value,) if isinstance(value, (str, SecretStr)) else value


def _template(text: str) -> str:
    permalinks.check(text)
    return text


Address = Annotated[str, AfterValidator(absolute_url)]


class Connection(BaseModel):
    """Settings of one CMS that sends to a site."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    secret: Annotated[
        tuple[Annotated[SecretStr, AfterValidator(_secret)], ...], BeforeValidator(_several)
    ] = Field((), description="secrets of the CMS; several for rotation")
    permalinks: dict[str, Annotated[str, AfterValidator(_template)]] = Field(
        {}, description="content type -> address of its pages"
    )
    sections: dict[str, str] = Field({}, description="content type -> section")
    ignore: tuple[str, ...] = Field((), description="content types without pages")
    locales: tuple[str, ...] = Field(
        (), description="languages of the CMS, if its delete events name none"
    )
    branch: str = Field("", description="GitHub: the published branch; empty: the default branch")
    topics: tuple[Address, ...] = Field(
        (), max_length=MOST_TOPICS, description="WebSub: feeds to subscribe to"
    )
    hub: Annotated[str, AfterValidator(optional_url)] = Field(
        "", description="WebSub: URL of the hub; empty: the hub named by each feed"
    )
    callback: Annotated[Address, AfterValidator(_origin)] | None = Field(
        None,
        description="WebSub: origin of this webhook for the hub; default: that of base_url",
    )
    allow_private: bool = Field(
        False, description="WebSub: allow feeds and hub in a private network, and http:// addresses"
    )

    def secrets(self) -> list[bytes]:
        """The secrets as bytes."""
        return [secret.get_secret_value().encode() for secret in self.secret]

    def template(self, kind: str, locale: str = "") -> str | None:
        """The permalink of a type: `kind:locale` before `kind` before `*`; None: no permalink."""
        for name in (f"{kind}:{locale}", kind, "*"):
            if name in self.permalinks:
                return self.permalinks[name]
        return None


def faults(
    name: str, connection: Connection, sections: frozenset[str], source: str = ""
) -> list[str]:
    """Faults of the connection `name` of a site with these sections.

    A CMS that is the kind of the site's `source` may send nothing and so need no secret.
    """
    where = f"sources.{name}"
    found = []
    if name in STANDARD:
        found += [
            f"{where}.secret: must be whsec_ followed by base64; `sitemapd secret` generates one"
            for secret in connection.secrets()
            if standard_key(secret) is None
        ]
    elif not connection.secret and name != source:
        found.append(f"{where}.secret: is missing; see `sitemapd connect {name}`")
    if name in _BEARER and any(b" " in secret for secret in connection.secrets()):
        found.append(f"{where}.secret: is sent as a Bearer token and must not contain spaces")
    found += [
        f"{where}.sections.{kind}: {section} is not a section of this site"
        for kind, section in connection.sections.items()
        if section not in sections
    ]
    if name in _WITH_LOCALES and not connection.locales:
        found.append(f"{where}.locales: must list every language: delete events do not name them")
    if name == "github":
        found += _patterns(where, connection)
    return found + _topics(where, connection, hub=name == "websub")


def _topics(where: str, connection: Connection, *, hub: bool) -> list[str]:
    """Faults of the subscriptions; `hub` is True if the sender is a hub."""
    given = [name for name in _OF_HUBS if getattr(connection, name)]
    if not hub:
        return [f"{where}.{name}: only sources.websub supports it" for name in given]
    if not connection.topics:
        return [f'{where}.topics: must list the feeds: topics = ["https://..."]']
    plain = [one for one in (*connection.topics, connection.hub) if one.startswith("http:")]
    if plain and not connection.allow_private:
        return [f"{where}: {one}: use https://, or set allow_private = true" for one in plain]
    return []


def elsewhere(name: str, connection: Connection, base: Base) -> list[str]:
    """Faults of permalinks with another origin than `base`: a site's pages all have that origin."""
    return [
        f"sources.{name}.permalinks.{kind}: must be an address at {base.origin}"
        for kind, template in connection.permalinks.items()
        if not template.startswith("/") and not template.startswith(f"{base.origin}/")
    ]


def barred(name: str, connection: Connection, allowed: Collection[str]) -> list[str]:
    """Fault of a hub that is none of the `allowed` hosts (RELIABILITY T22)."""
    host = urlsplit(connection.hub).hostname
    if host is None or host in allowed:
        return []
    return [f"sources.{name}.hub: {host} is not a known hub: add it to notify.hosts"]


def _patterns(where: str, connection: Connection) -> list[str]:
    found = []
    for text in connection.permalinks:
        try:
            permalinks.pattern(text)
        except ValueError as error:
            found.append(f"{where}.permalinks: {error}")
    return found


def fingerprint(key: bytes) -> str:
    """Public name of a key of a Standard Webhooks secret; it does not help to guess 192 bits."""
    return hashlib.sha256(key).hexdigest()[:8]
