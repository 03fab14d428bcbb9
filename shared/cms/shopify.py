"""Products and collections of Shopify, by their handles."""

from __future__ import annotations

from shared.cms.fields import Fields, date, images, items, text
from shared.cms.pages import SentPage

KINDS = {"products": "product", "collections": "collection"}
"""Types by the family of their addresses, /products/.. and /collections/.."""


def page(family: str, number: str | int, said: Fields) -> SentPage:
    """Return the page of a product or collection that is in the online shop."""
    shown = [text(image, "src") for image in items(said.get("images"))]
    members = {
        "lastmod": date(said, "updated_at"),
        "published": date(said, "published_at"),
        "title": text(said, "title"),
        "images": images([*shown, text(said, "image.src")]),
    }
    default = f"/{family}/{{handle}}"
    return SentPage(KINDS[family], number, said, default=default, members=members)
