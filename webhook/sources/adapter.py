"""What every adapter is: a delivery in, proof of its sender and what it means out. Pure.

Intent comes from the event a vendor names, never from fields that lie (WEBHOOKS 1.6, 1.8, 1.9);
only fields that are named in an adapter are read, so nothing personal gets any further.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from shared.config.cms_connections import Connection
from shared.events.event_fields import EventRules
from shared.events.permalinks import PermalinkError, render
from webhook.auth import Credentials
from webhook.request import request_body
from webhook.sources.guides import Guide

JSON = request_body.JSON


class Delivery(NamedTuple):
    """One delivery: names of `headers` in lower case, `body` as it came over the wire."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    query: str = ""


class SenderSecrets(NamedTuple):
    """What a sender may prove itself with: the connection's secrets, and what the site knows."""

    secrets: Sequence[bytes]
    site: Credentials


class Proof(NamedTuple):
    """A verified delivery: its vendor's id for it, and when it was signed (ms since 1970).

    Both None where the vendor says nothing that can be relied on.
    """

    delivery: str | None = None
    moment: int | None = None


class PageChange(NamedTuple):
    """One event, as the native interface takes it; `kind` and `locale` make its id unique.

    `moment` is when it happened by the vendor's own clock (ms), None for when it was signed.
    """

    item: Mapping[str, object]
    kind: str = ""
    locale: str = ""
    moment: int | None = None


class IgnoredDelivery(NamedTuple):
    """Nothing for a sitemap; `reason` is for the administrator, and names no content."""

    reason: str


class ResyncAsked(NamedTuple):
    """Something changed that the delivery does not name: `scope` has to be compared anew.

    `scope` is a path below which the pages lie, empty for the whole site.
    """

    scope: str
    reason: str


Outcome = PageChange | IgnoredDelivery | ResyncAsked


class Adapter(Protocol):
    """One adapter; modules are what implements it."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """Its name in addresses and in the configuration."""

    @property
    def MEDIA_TYPES(self) -> frozenset[str]:  # noqa: N802
        """The forms in which it sends."""

    @property
    def GUIDE(self) -> Guide:  # noqa: N802
        """How to connect it."""

    def verify(self, hook: Delivery, keys: SenderSecrets, now: float, /) -> Proof:
        """Who sent it; UnauthorizedError, or RefusedError `stale` where only its time is wrong."""

    def translate(self, hook: Delivery, config: AdapterContext, /) -> Iterable[Outcome]:
        """What it means; RefusedError where the body is no strict JSON."""


@dataclass(frozen=True, slots=True)
class SentPage:
    """What an adapter read of a page that is public now.

    `kind` is its type as permalinks and sections name it, `fields` what permalinks may use, `loc`
    its address where the vendor gives one, `default` its permalink where none is configured.
    `members` are further ones of the event. `owner` is the kind and locale within which its id is
    unique, where these are not its own.
    """

    kind: str
    ident: str | int
    fields: Mapping[str, object]
    locale: str = ""
    loc: str | None = None
    default: str | None = None
    members: Mapping[str, object] | None = None
    owner: tuple[str, str] | None = None
    moment: int | None = None


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """What the site says about a sender."""

    name: str
    connection: Connection
    rules: EventRules

    def page(self, page: SentPage) -> Iterable[Outcome]:
        """A page that is public: listed at its permalink, else where the vendor says it is."""
        if page.kind in self.connection.ignore:
            yield IgnoredDelivery(f"{page.kind} is in ignore")
            return
        owner = page.owner or (page.kind, page.locale)
        template = self.connection.template(page.kind, page.locale)
        if template is None and page.loc is None:
            template = page.default
        if template is None and page.loc is None:
            yield IgnoredDelivery(
                f'no permalink for the type {page.kind}: add "{page.kind}" = "/{{slug}}" to'
                f" the permalinks of sources.{self.name}"
            )
            return
        try:
            loc = page.loc if template is None else self.url(template, page.fields)
        except PermalinkError as error:
            yield self.gone(page.kind, page.ident, owner, page.moment)
            yield IgnoredDelivery(f"{page.kind}: {error}")
            return
        item = {"type": "upsert", "loc": loc, "id": page.ident, **(page.members or {})}
        if page.kind in self.connection.sections:
            item["section"] = self.connection.sections[page.kind]
        said = {name: value for name, value in item.items() if value not in (None, "", [], ())}
        yield PageChange(said, *owner, page.moment)

    def gone(
        self,
        kind: str,
        ident: str | int,
        owner: tuple[str, str] | None = None,
        moment: int | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> Outcome:
        """A page that is not public (any more), known by its id.

        `fields` are what it had while it was public: an import knows pages by address alone.
        """
        if kind in self.connection.ignore:
            return IgnoredDelivery(f"{kind} is in ignore")
        owner = owner or (kind, "")
        item: dict[str, object] = {"type": "delete", "id": ident}
        template = self.connection.template(*owner) if fields is not None else None
        if template is not None and fields is not None:
            with suppress(PermalinkError):
                item["loc"] = self.url(template, fields)
        return PageChange(item, *owner, moment)

    def url(self, template: str, fields: Mapping[str, object]) -> str:
        """The address at a permalink; PermalinkError where a field is missing."""
        made = render(template, {"locale": "", **fields})
        return self.rules.base.origin + made if made.startswith("/") else made
