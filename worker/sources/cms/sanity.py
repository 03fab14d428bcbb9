"""Published documents of Sanity, by GROQ over its Query API (sanity.io/docs/http-reference/query).

The address names project and data set, sanity:https://PROJECT.api.sanity.io/DATASET. Documents have
the form of the projection that webhooks have; one that is not that of `sitemapd connect sanity` is
given as `source_query`. They are read by their ids: those that come or go move no others.
"""

from __future__ import annotations

from collections.abc import Iterator

from shared.cms import sanity
from shared.cms.fields import ident
from shared.errors import SourceError
from worker.sources.cms.cms_pages import CmsPages, split
from worker.sources.cms.collection_parts import Part, entries, objects
from worker.sources.json_api import JsonApi
from worker.sources.records import Item, RecordRefusal
from worker.sources.source_options import SourceOptions

PER_PART = 1_000
"""Documents per request."""

_VERSION = "v2025-02-19"


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every published document of the types with permalinks, or of those behind the address.

    Raises SourceError if they cannot be read to their end.
    """
    root, chosen = split(address)
    pages = CmsPages("sanity", access)
    origin, _, dataset = root.rstrip("/").rpartition("/")
    if not dataset or origin.endswith("/"):
        raise SourceError("sanity needs the data set: sanity:https://PROJECT.api.sanity.io/DATASET")
    url = f"{origin}/{_VERSION}/data/query/{dataset}"
    projection = access.query or sanity.PROJECTION
    if not (projection.startswith("{") and projection.endswith("}")):
        raise SourceError("the query for sanity must be a projection: {_id, _type, ...}")
    secret = ("Authorization", f"Bearer {access.key}") if access.key else None
    with JsonApi(root, secret=secret, wait=access.wait) as api:
        for kind in pages.kinds(chosen):
            yield from pages.of(kind, _documents(kind, url, projection, api, pages))


def _documents(
    kind: str, url: str, projection: str, api: JsonApi, pages: CmsPages
) -> Iterator[Item]:
    query = f"*[_type == $kind && _id > $last] | order(_id) [0...{PER_PART}] {projection}"

    def part(after: str | None) -> Part:
        last = after or ""
        answer = api.post(
            f"{url}?perspective=published",
            {"query": query, "params": {"kind": kind, "last": last}},
        ).value  # fmt: skip
        rows = objects(answer, "result", url)
        if not all(isinstance(row.get("_id"), str) for row in rows):
            raise SourceError("the projection for sanity must hold _id and _type")
        return Part(rows, rows[-1]["_id"] if len(rows) == PER_PART else None)

    for row in entries(kind, part):
        if isinstance(row, RecordRefusal):
            yield row
            continue
        key = ident(row, "_id") or ""
        if not sanity.is_draft(key):
            yield pages.item(sanity.page(key, row))
