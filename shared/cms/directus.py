"""Items of Directus, whose key is any column; they are public by their `status`."""

from __future__ import annotations

from shared.cms.fields import Fields, date
from shared.cms.pages import SentPage

PUBLISHED = "published"
READ = ("status", "slug", "date_created", "date_updated", "date_published")
"""Fields that make a page, beside those that permalinks name."""


def is_public(row: Fields) -> bool:
    """Return True if the item is published, or of a collection without a status."""
    return bool(row.get("status", PUBLISHED) == PUBLISHED)


def page(kind: str, key: str, row: Fields) -> SentPage:
    """Return the page of a public item."""
    lastmod = date(row, "date_updated") or date(row, "date_created")
    members = {"lastmod": lastmod, "published": date(row, "date_published")}
    return SentPage(kind, key, {"id": key, **row}, members=members)
