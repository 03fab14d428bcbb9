"""The page of an entry of a CMS: its address by permalinks, and the members of its event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from shared.config.sites.cms_connections import Connection
from shared.errors import SitemapdError
from shared.events.permalinks import render

_LONGEST = 512


class PageChange(NamedTuple):
    """One event in the form of the native interface; `kind` and `locale` make its id unique.

    `moment` is when it happened by the vendor's clock (ms since 1970), None for the time of
    signing.
    """

    item: Mapping[str, object]
    kind: str = ""
    locale: str = ""
    moment: int | None = None


class NoPageError(SitemapdError):
    """An entry that is no page by the configuration; the message names the setting."""


@dataclass(frozen=True, slots=True)
class SentPage:
    """The fields that were read of a page that is public.

    `kind` is its type as permalinks and sections name it, `fields` the values for permalinks, `loc`
    its address if the vendor sends one, `default` its permalink where none is configured. `members`
    are further members of the event. `owner` is the kind and locale within which its id is unique,
    where these differ from `kind` and `locale`. `moment` is as in PageChange.
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

    @property
    def owned(self) -> tuple[str, str]:
        """The kind and locale within which its id is unique."""
        return self.owner or (self.kind, self.locale)


@dataclass(frozen=True, slots=True)
class CmsSite:
    """The `name` of a CMS, its `connection` to a site, and the site's `origin`."""

    name: str
    connection: Connection
    origin: str

    def upsert(self, page: SentPage) -> PageChange:
        """Return the upsert of a public page at its permalink, or at `loc` where none is
        configured.

        Raises NoPageError for a type that is ignored or has no permalink, and PermalinkError for a
        page that lacks a field of its permalink.
        """
        if page.kind in self.connection.ignore:
            raise NoPageError(f"{page.kind} is in ignore")
        template = self.connection.template(page.kind, page.locale)
        if template is None and page.loc is None:
            template = page.default
        if template is None and page.loc is None:
            raise NoPageError(
                f'no permalink for the type {page.kind}: add "{page.kind}" = "/{{slug}}" to'
                f" the permalinks of sources.{self.name}"
            )
        loc = page.loc if template is None else self.url(template, page.fields)
        item = {"type": "upsert", "loc": loc, "id": page.ident, **(page.members or {})}
        if page.kind in self.connection.sections:
            item["section"] = self.connection.sections[page.kind]
        stated = {name: value for name, value in item.items() if value not in (None, "", [], ())}
        return PageChange(stated, *page.owned, page.moment)

    def url(self, template: str, fields: Mapping[str, object]) -> str:
        """Return the address for a permalink. Raises PermalinkError if a field is missing."""
        made = render(template, {"locale": "", **fields})
        return self.origin + made if made.startswith("/") else made


def encodable(text: str) -> str:
    """Return a text cut to _LONGEST characters that any encoding takes: half surrogates are
    escaped.
    """
    return text[:_LONGEST].encode("utf-8", "backslashreplace").decode()
