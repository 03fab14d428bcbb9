"""Published entries of Contentful, by the Sync API of its Content Delivery API (references/
content-delivery-api/synchronization).

The address is that of an environment, contentful:https://cdn.contentful.com/spaces/ID (or ..
/environments/ID). An initial sync gives each entry once, in all languages, by tokens of the server,
which miss nothing that stays.
"""

from __future__ import annotations

from collections.abc import Iterator

from shared.cms import contentful
from shared.cms.fields import Fields, ident, text
from shared.errors import SourceError
from worker.sources.cms.cms_pages import CmsPages, split
from worker.sources.cms.collection_parts import Part, entries, objects
from worker.sources.json_api import JsonApi
from worker.sources.records import Item, RecordRefusal
from worker.sources.source_options import SourceOptions


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every published entry of the types with permalinks, or of those behind the address, in
    each language of the connection.

    Raises SourceError if one cannot be read to its end.
    """
    root, chosen = split(address)
    pages = CmsPages("contentful", access)
    if not pages.connection.locales:
        raise SourceError('contentful needs its languages: locales = ["en-US"] in its sources')
    with JsonApi(root, secret=("Authorization", f"Bearer {access.key}"), wait=access.wait) as api:
        for kind in pages.kinds(chosen):
            yield from pages.of(kind, _entries(kind, root, api, pages))


def _entries(kind: str, root: str, api: JsonApi, pages: CmsPages) -> Iterator[Item]:
    url = f"{root}sync"

    def part(after: str | None) -> Part:
        first = {"initial": "true", "type": "Entry", "content_type": kind}
        answer = (api.get(url, **first) if after is None else api.get(after)).value
        following = text(answer, "nextPageUrl")
        if not following and not text(answer, "nextSyncUrl"):
            raise SourceError(f"{url} is no sync of Contentful (nextPageUrl, nextSyncUrl)")
        return Part(objects(answer, "items", url), following or None)

    for entry in entries(kind, part):
        if isinstance(entry, RecordRefusal):
            yield entry
        elif text(entry, "sys.type") == "Entry":
            yield from _versions(kind, entry, pages)


def _versions(kind: str, entry: Fields, pages: CmsPages) -> Iterator[Item]:
    key = ident(entry, "sys.id")
    if key is None:
        raise SourceError(f"{kind} of Contentful has entries without an id")
    for version in contentful.versions(entry, key, pages.connection):
        if version.page is not None:
            yield pages.item(version.page)
