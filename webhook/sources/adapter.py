"""The interface of every adapter: a delivery in, proof of its sender and its page changes out.
Pure.

The action is taken from the event that the vendor names, never from fields that are unreliable
(WEBHOOKS 1.6, 1.8, 1.9). Only fields named in an adapter are read, so no personal data is passed
on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from shared.cms.pages import CmsSite, NoPageError, PageChange, SentPage
from shared.config.sites.cms_connections import Connection
from shared.events.event_fields import EventRules
from shared.events.permalinks import PermalinkError
from webhook import request_body
from webhook.auth import Credentials
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
    """The secrets that prove a sender: those of the connection, and the credentials of the site."""

    secrets: Sequence[bytes]
    site: Credentials


class Proof(NamedTuple):
    """A verified delivery: the vendor's id for it, and when it was signed (ms since 1970).

    Each is None where the vendor gives no reliable value.
    """

    delivery: str | None = None
    moment: int | None = None


class IgnoredDelivery(NamedTuple):
    """A delivery, or part of one, without effect on the sitemap; `reason` is for the administrator,
    and names no content.
    """

    reason: str


class ResyncAsked(NamedTuple):
    """A request to compare `scope` with its source: the delivery does not name what changed.

    `scope` is the path that contains the pages, empty for the whole site.
    """

    scope: str
    reason: str


Outcome = PageChange | IgnoredDelivery | ResyncAsked


class Adapter(Protocol):
    """Protocol of the adapters, which are modules."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """Name of the adapter in addresses and in the configuration."""

    @property
    def MEDIA_TYPES(self) -> frozenset[str]:  # noqa: N802
        """Media types that the vendor sends."""

    @property
    def GUIDE(self) -> Guide:  # noqa: N802
        """Instructions for connecting the vendor."""

    def verify(self, hook: Delivery, keys: SenderSecrets, now: float, /) -> Proof:
        """Verify the sender at `now` (seconds since 1970).

        Raises UnauthorizedError, or RefusedError `stale` if only the signed time is wrong.
        """

    def translate(self, hook: Delivery, config: AdapterContext, /) -> Iterable[Outcome]:
        """Yield the outcomes of the delivery. Raises RefusedError if the body is no strict JSON."""


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """The configuration of a sender at one site."""

    name: str
    connection: Connection
    rules: EventRules

    def page(self, page: SentPage) -> Iterable[Outcome]:
        """Yield the upsert of a public page at its permalink, or at `loc` where no permalink is
        configured.

        A page whose permalink cannot be filled in is deleted.
        """
        try:
            yield self._cms.upsert(page)
        except NoPageError as error:
            yield IgnoredDelivery(str(error))
        except PermalinkError as error:
            yield self.gone(page.kind, page.ident, page.owned, page.moment)
            yield IgnoredDelivery(f"{page.kind}: {error}")

    def gone(
        self,
        kind: str,
        ident: str | int,
        owner: tuple[str, str] | None = None,
        moment: int | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> Outcome:
        """Return the delete by id of a page that is not public (any more).

        `fields` are its values from when it was public: an imported page is known by its address
        only. `moment` is as in PageChange.
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
        """Return the address for a permalink. Raises PermalinkError if a field is missing."""
        return self._cms.url(template, fields)

    @property
    def _cms(self) -> CmsSite:
        return CmsSite(self.name, self.connection, self.rules.base.origin)
