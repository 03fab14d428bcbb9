"""How a site is connected to a CMS: its secrets, and what its pages are called here."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from shared import permalinks

WEBHOOK_PREFIX = "whsec_"
LEAST_SECRET = 16

STANDARD = ("wordpress", "wagtail", "payload", "cloudevents")
"""Senders that sign by Standard Webhooks: the secrets and tokens of the site verify them, too."""

SOURCES = (
    *STANDARD, "contentful", "datocms", "directus", "drupal", "ghost", "github", "prismic",
    "sanity", "shopify", "storyblok", "strapi", "webflow", "woocommerce",
)  # fmt: skip
"""Every sender that has an adapter; webhook/sources/registry.py holds them."""

_BEARER = ("directus", "strapi")
_WITH_LOCALES = ("contentful",)


def _name(name: str) -> str:
    if name not in SOURCES:
        raise ValueError(f"no CMS that is known here; known: {', '.join(sorted(SOURCES))}")
    return name


SourceName = Annotated[str, AfterValidator(_name)]


def _secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if len(text) < LEAST_SECRET or not (text.isascii() and text.isprintable()):
        raise ValueError(f"a secret has at least {LEAST_SECRET} printable ASCII characters")
    return value


def _several(value: object) -> object:
    return (value,) if isinstance(value, (str, SecretStr)) else value


def _template(text: str) -> str:
    permalinks.check(text)
    return text


class Connection(BaseModel):
    """One CMS that sends to a site."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    secret: Annotated[
        tuple[Annotated[SecretStr, AfterValidator(_secret)], ...], BeforeValidator(_several)
    ] = Field((), description="what the CMS signs with; several for rotation")
    permalinks: dict[str, Annotated[str, AfterValidator(_template)]] = Field(
        {}, description="type of content -> address of its pages"
    )
    sections: dict[str, str] = Field({}, description="type of content -> section")
    ignore: tuple[str, ...] = Field((), description="types of content that are no pages")
    locales: tuple[str, ...] = Field(
        (), description="the languages of the CMS, where what it deletes names none"
    )
    branch: str = Field("", description="GitHub: the published branch; default the repository's")

    def secrets(self) -> list[bytes]:
        """The secrets as bytes."""
        return [secret.get_secret_value().encode() for secret in self.secret]

    def template(self, kind: str, locale: str = "") -> str | None:
        """The permalink of a type: `kind:locale` goes before `kind`, that before `*`."""
        for name in (f"{kind}:{locale}", kind, "*"):
            if name in self.permalinks:
                return self.permalinks[name]
        return None


def faults(name: str, connection: Connection, sections: frozenset[str]) -> list[str]:
    """What is wrong with a connection to `name` of a site with these sections."""
    where = f"sources.{name}"
    found = []
    if name in STANDARD:
        found += [
            f"{where}.secret: must be whsec_ and base64: `sitemapd secret` makes one"
            for secret in connection.secrets()
            if standard_key(secret) is None
        ]
    elif not connection.secret:
        found.append(f"{where}.secret: is missing; `sitemapd connect {name}` says where to get it")
    if name in _BEARER and any(b" " in secret for secret in connection.secrets()):
        found.append(f"{where}.secret: is sent as a Bearer token, which holds no spaces")
    found += [
        f"{where}.sections.{kind}: {section} is no section of this site"
        for kind, section in connection.sections.items()
        if section not in sections
    ]
    if name in _WITH_LOCALES and not connection.locales:
        found.append(f"{where}.locales: name every language: what is deleted does not")
    if name == "github":
        found += _patterns(where, connection)
    return found


def _patterns(where: str, connection: Connection) -> list[str]:
    found = []
    for text in connection.permalinks:
        try:
            permalinks.pattern(text)
        except ValueError as error:
            found.append(f"{where}.permalinks: {error}")
    return found


def fingerprint(key: bytes) -> str:
    """By what people know a key of a Standard Webhooks secret; 192 bits cannot be guessed by it."""
    return hashlib.sha256(key).hexdigest()[:8]


def standard_key(secret: bytes) -> bytes | None:
    """The raw key of a Standard Webhooks secret, None if it is none."""
    if not secret.startswith(WEBHOOK_PREFIX.encode()):
        return None
    try:
        key = base64.b64decode(secret.removeprefix(WEBHOOK_PREFIX.encode()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if 24 <= len(key) <= 64 else None
