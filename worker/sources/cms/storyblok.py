"""Published stories of Storyblok, by the links of its Content Delivery API v2 (storyblok.com/docs/
api/content-delivery/v2/links).

The address is that of your region, storyblok:https://api.storyblok.com. Links hold the slugs and
dates of stories, and none of their content. Storyblok counts by pages: its total shows that a story
went meanwhile. Its webhooks name no dates, so where there are some, dates are those of new pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shared.cms import storyblok
from shared.cms.fields import Fields, date, ident, mapping, text
from shared.errors import SourceError
from worker.sources.cms.cms_pages import CmsPages, split
from worker.sources.cms.collection_parts import Part, entries
from worker.sources.json_api import JsonApi
from worker.sources.records import Item, RecordRefusal
from worker.sources.source_options import SourceOptions

PER_PART = 1_000
"""Links per request, the maximum of Storyblok."""


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every published story of the space of `access.key`, a public access token.

    Raises SourceError without a key, and if they cannot be read to their end.
    """
    if not access.key:
        raise SourceError("Storyblok asks for a public access token of the space")
    root, _ = split(address, "v2/")
    pages = CmsPages("storyblok", access)
    url = f"{root}cdn/links"
    with JsonApi(root, wait=access.wait) as api:

        def part(page: int | None) -> Part:
            at = page or 1
            answer = api.get(
                url, token=access.key, version="published", include_dates=1, paginated=1,
                per_page=PER_PART, page=at,
            )  # fmt: skip
            links, total = mapping(answer.value).get("links"), answer.headers.get("total", "")
            if not isinstance(links, dict) or not (total.isascii() and total.isdigit()):
                raise SourceError(f"{url} gives no links of Storyblok (links, the header total)")
            rows = [mapping(row) for row in links.values()]
            return Part(rows, at + 1 if at * PER_PART < int(total) else None, int(total))

        yield from pages.of(storyblok.STORY, _stories(entries("links", part), pages))


def _stories(found: Iterator[Fields | RecordRefusal], pages: CmsPages) -> Iterator[Item]:
    kept = frozenset({"lastmod"}) if pages.connection.secret else frozenset[str]()
    for row in found:
        if isinstance(row, RecordRefusal):
            yield row
        # Folders are listed whatever is in them.
        elif row.get("is_folder") is not True and row.get("published") is not False:
            key = ident(row, "id")
            if key is None:
                raise SourceError("Storyblok gives links without an id")
            page = storyblok.page(key, text(row, "slug"))
            dated = replace(page, members={"lastmod": date(row, "published_at")})
            yield pages.item(dated, kept=kept)
