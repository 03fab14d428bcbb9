"""Entries of Strapi 5: a document in one language."""

from __future__ import annotations

from shared.cms.fields import Fields, date, ident, text
from shared.cms.pages import SentPage


def page(kind: str, entry: Fields) -> SentPage | None:
    """Return the page of a published entry, None without a document id."""
    number = ident(entry, "documentId")
    if number is None:
        return None
    members = {
        "lastmod": date(entry, "updatedAt"),
        "published": date(entry, "publishedAt"),
        "canonical": text(entry, "canonicalUrl") or text(entry, "seo.canonicalURL"),
    }
    return SentPage(kind, number, entry, text(entry, "locale"), members=members)
