"""Documents of Sanity, in the form of the projection that `sitemapd connect sanity` prints."""

from __future__ import annotations

from shared.cms.fields import Fields, date, text
from shared.cms.pages import SentPage

OWNER = ("document", "")
"""Ids are unique in a data set, and a deleted document may lack its language."""

PROJECTION = """\
{_id, _type, _updatedAt, publishedAt, title, "slug": slug.current,
               "locale": language, "noindex": seo.noindex, "canonical": seo.canonical}"""


def is_draft(number: str | int) -> bool:
    """Return True for the id of a draft, or of a version in a release."""
    return str(number).startswith(("drafts.", "versions."))


def page(number: str | int, said: Fields) -> SentPage:
    """Return the page of a published document; with a `url` it needs no permalink."""
    kind, locale = text(said, "_type"), text(said, "locale")
    members = {
        "lastmod": date(said, "_updatedAt"),
        "published": date(said, "publishedAt"),
        "title": text(said, "title"),
        "canonical": text(said, "canonical"),
        "noindex": said.get("noindex") is True,
    }
    fields = {**said, "locale": locale}
    loc = text(said, "url") or None
    return SentPage(kind, number, fields, locale, loc, members=members, owner=OWNER)
