"""Published documents of Payload 3, by its REST API (payloadcms.com/docs/rest-api/overview).

Payload counts by pages: what is deleted during the read moves others up unseen, and the stated
total shows it. A key is `COLLECTION:API KEY` of a user that may read the collections; without one
Payload shows what everybody may see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shared.cms import payload
from shared.cms.fields import Fields, ident
from shared.errors import SourceError
from shared.events.permalinks import lookup
from worker.sources.cms.cms_pages import CmsPages, split
from worker.sources.cms.collection_parts import Part, entries, number, objects
from worker.sources.json_api import JsonApi
from worker.sources.records import Item, RecordRefusal
from worker.sources.source_options import SourceOptions

PER_PART = 100
"""Documents per request."""

_READ = ("slug", "updatedAt", "publishedAt", "title", "_status")


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every published document of the collections with permalinks, or of those behind the
    address, in each language of the connection.

    Raises SourceError if one cannot be read to its end.
    """
    root, chosen = split(address, "api/")
    pages = CmsPages("payload", access)
    users, _, key = access.key.partition(":")
    secret = ("Authorization", f"{users} API-Key {key}") if key else None
    with JsonApi(root, secret=secret, wait=access.wait) as api:
        for kind, name in pages.kinds(chosen).items():
            yield from pages.of(kind, _documents(kind, f"{root}{name}", api, pages))


def _documents(kind: str, url: str, api: JsonApi, pages: CmsPages) -> Iterator[Item]:
    names = [*_READ, *(path.partition(".")[0] for path in pages.fields(kind))]
    select = {f"select[{name}]": "true" for name in dict.fromkeys(names)}

    def part(page: int | None) -> Part:
        answer = api.get(
            url, locale="all", draft="false", depth=0, sort="id", limit=PER_PART, page=page or 1,
            **select,
        ).value  # fmt: skip
        after = lookup(answer, "nextPage")
        if after is not None and type(after) is not int:
            raise SourceError(f"{url} is no collection of Payload (docs, totalDocs, nextPage)")
        return Part(objects(answer, "docs", url), after, number(answer, "totalDocs", url))

    for doc in entries(kind, part):
        if isinstance(doc, RecordRefusal):
            yield doc
        else:
            yield from _versions(kind, doc, pages)


def _versions(kind: str, doc: Fields, pages: CmsPages) -> Iterator[Item]:
    key, locales = ident(doc, "id"), pages.connection.locales
    if key is None:
        raise SourceError(f"{kind} has documents without an id")
    if not locales and isinstance(doc.get("slug"), Mapping):
        raise SourceError(
            f'the slug of {kind} differs by language: add locales = ["en", ...] to sources.payload'
        )
    for version in payload.versions(kind, key, doc, locales):
        if version.page is not None:
            yield pages.item(version.page)
