"""Entries of Contentful, read in all languages: one page for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shared.cms.fields import Fields, date, mapping, text
from shared.cms.pages import SentPage
from shared.config.sites.cms_connections import Connection
from shared.events.permalinks import check, lookup


class ContentfulVersion(NamedTuple):
    """An entry in one language: its page, None if it has none in it."""

    kind: str
    owner: tuple[str, str]
    page: SentPage | None


def versions(
    entry: Fields, number: str | int, connection: Connection
) -> Iterator[ContentfulVersion]:
    """Yield a published entry in each language of `connection`.

    Ids are unique in a space, and a tombstone may lack the type.
    """
    kind, fields = text(entry, "sys.contentType.sys.id"), mapping(entry.get("fields"))
    for locale in connection.locales:
        owner = ("entry", locale)
        found = {n: value[locale] for n, value in fields.items() if locale in mapping(value)}
        if not found or _has_no_page(found, fields, kind, locale, connection):
            yield ContentfulVersion(kind, owner, None)
            continue
        members = {"lastmod": date(entry, "sys.updatedAt")}
        found |= {"locale": locale, "sys": mapping(entry.get("sys"))}
        page = SentPage(kind, number, found, locale, members=members, owner=owner)
        yield ContentfulVersion(kind, owner, page)


def _has_no_page(
    found: Fields, fields: Fields, kind: str, locale: str, connection: Connection
) -> bool:
    """Return True if this language lacks a permalink field, such as the slug, that others have."""
    template = connection.template(kind, locale)
    needed = [part.path for part in check(template or "/") if not isinstance(part, str)]
    return any(
        path.partition(".")[0] in fields and lookup(found, path) in (None, "") for path in needed
    )
