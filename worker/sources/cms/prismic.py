"""Published documents of Prismic, by its Document API v2 (prismic.io/docs/rest-api-technical-
reference).

The address is that of the repository, prismic:https://NAME.cdn.prismic.io. All parts are of one
ref: what is published during the read belongs to the next. Its webhooks name no pages, and ask for
a reconcile; permalinks name a document's `uid`, `lang` or `data.FIELD`.
"""

from __future__ import annotations

from collections.abc import Iterator

from shared.cms.fields import Fields, date, ident, items, text
from shared.cms.pages import SentPage
from shared.errors import SourceError
from shared.events.permalinks import lookup
from worker.sources.cms.cms_pages import CmsPages, split
from worker.sources.cms.collection_parts import Part, entries, number, objects
from worker.sources.json_api import JsonApi
from worker.sources.records import Item, RecordRefusal
from worker.sources.source_options import SourceOptions

PER_PART = 100
"""Documents per request, the maximum of Prismic."""


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every published document of the types with permalinks, or of those behind the address,
    in all languages.

    Raises SourceError if one cannot be read to its end.
    """
    root, chosen = split(address, "api/v2/")
    pages = CmsPages("prismic", access)
    key = {"access_token": access.key} if access.key else {}
    with JsonApi(root, wait=access.wait) as api:
        refs = items(lookup(api.get(root.rstrip("/"), **key).value, "refs"))
        master = next((text(ref, "ref") for ref in refs if ref.get("isMasterRef") is True), "")
        if not master:
            raise SourceError(f"{root} is no repository of Prismic: it names no master ref")
        for kind in pages.kinds(chosen):
            query = {"ref": master, "q": f'[[at(document.type,"{kind}")]]', **key}
            yield from pages.of(kind, _documents(kind, root, query, api, pages))


def _documents(
    kind: str, root: str, query: dict[str, str], api: JsonApi, pages: CmsPages
) -> Iterator[Item]:
    url = f"{root}documents/search"
    data = {path.split(".")[1] for path in pages.fields(kind) if path.startswith("data.")}
    wanted = ",".join(f"{kind}.{name}" for name in sorted(data)) or f"{kind}.uid"

    def part(page: int | None) -> Part:
        at = page or 1
        answer = api.get(
            url, lang="*", pageSize=PER_PART, page=at, fetch=wanted,
            orderings="[document.first_publication_date]", **query,
        ).value  # fmt: skip
        more = at < number(answer, "total_pages", url)
        total = number(answer, "total_results_size", url)
        return Part(objects(answer, "results", url), at + 1 if more else None, total)

    for row in entries(kind, part):
        yield row if isinstance(row, RecordRefusal) else pages.item(_page(kind, row))


def _page(kind: str, row: Fields) -> SentPage:
    key, locale = ident(row, "id"), text(row, "lang")
    if key is None:
        raise SourceError("Prismic gives documents without an id")
    members = {
        "lastmod": date(row, "last_publication_date"),
        "published": date(row, "first_publication_date"),
    }
    fields = {**row, "locale": locale}
    # Ids are unique in a repository: each language is a document of its own.
    return SentPage(kind, key, fields, locale, members=members, owner=("document", ""))
