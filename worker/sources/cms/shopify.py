"""Products, collections, pages and articles of Shopify's online shop, by its Admin GraphQL API.

The address is that of the shop, shopify:https://NAME.myshopify.com, and the key an access token of
a custom app that may read products and content. Pages are read by cursors of the server, which miss
nothing that stays. Webhooks name all images of a product, this the first: where there are some, it
is that of new pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from shared.cms import shopify
from shared.cms.fields import Fields, date, items, mapping, text
from shared.cms.pages import SentPage
from shared.errors import SourceError
from shared.events.permalinks import lookup
from worker.sources.cms.cms_pages import CmsPages, split
from worker.sources.cms.collection_parts import Part, entries, objects
from worker.sources.json_api import LONGEST_PAUSE_S, TRIES, JsonApi
from worker.sources.records import Item, RecordRefusal
from worker.sources.source_options import SourceOptions

PER_PART = 100
"""Objects per request: its cost stays below half of what the smallest plan may ask at once."""

VERSION = "2026-10"

_PUBLIC = "publishedAt"
_COLLECTIONS = {
    "products": """legacyResourceId handle title updatedAt publishedAt status
        featuredMedia { preview { image { url } } }""",
    "collections": "legacyResourceId handle title updatedAt image { url }",
    "pages": "id handle title updatedAt publishedAt isPublished",
    "articles": "id handle title updatedAt publishedAt isPublished blog { handle }",
}
_QUERY = """query ($first: Int!, $after: String) {
    NAME(query: "published_status:published", sortKey: ID, first: $first, after: $after)
    { nodes { FIELDS } pageInfo { hasNextPage endCursor } } }"""
_ADDRESSES = {"pages": "/pages/{handle}", "articles": "/blogs/{blog.handle}/{handle}"}
_STATED = frozenset({"lastmod", "images"})


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every product, collection, page and article of the online shop.

    `#products,pages` behind the address selects some. Raises SourceError if one cannot be read to
    its end.
    """
    root, chosen = split(address)
    pages = CmsPages("shopify", access)
    named = [name.strip() for name in chosen.split(",") if name.strip()] or [*_COLLECTIONS]
    if unknown := [name for name in named if name not in _COLLECTIONS]:
        known = ", ".join(_COLLECTIONS)
        raise SourceError(f"Shopify has no collection {unknown[0][:64]}; there are: {known}")
    kept = frozenset({"images"}) if pages.connection.secret else frozenset[str]()
    with JsonApi(root, secret=("X-Shopify-Access-Token", access.key), wait=access.wait) as api:
        for name in named:
            shop = _Shop(f"{root}admin/api/{VERSION}/graphql.json", api, access)
            for row in entries(name, shop.parts(name)):
                if isinstance(row, RecordRefusal):
                    yield row
                elif _is_public(row):
                    yield pages.item(_page(name, row), _STATED, kept)


class _Shop:
    """The GraphQL interface of a shop, at `url`."""

    def __init__(self, url: str, api: JsonApi, access: SourceOptions) -> None:
        self._url, self._api, self._wait = url, api, access.wait

    def parts(self, name: str) -> Callable[[str | None], Part]:
        """Return what reads the parts of a collection."""
        query = _QUERY.replace("NAME", name).replace("FIELDS", _COLLECTIONS[name])

        def part(after: str | None) -> Part:
            answer = self._asked({"query": query, "variables": {"first": PER_PART, "after": after}})
            more = lookup(answer, f"data.{name}.pageInfo.hasNextPage")
            if type(more) is not bool:
                raise SourceError(f"{self._url} gives no {name} (pageInfo.hasNextPage)")
            rows = objects(answer, f"data.{name}.nodes", name)
            return Part(rows, text(answer, f"data.{name}.pageInfo.endCursor") if more else None)

        return part

    def _asked(self, value: object) -> Any:
        """Return the answer to a query, asked again while it costs more than is left."""
        for _ in range(TRIES):
            answer = self._api.post(self._url, value).value
            errors = items(lookup(answer, "errors"))
            if not errors:
                return answer
            code = text(errors[0], "extensions.code")
            if code != "THROTTLED":
                # The message is not logged: it may hold anything.
                raise SourceError(f"{self._url} refuses the query: {code[:64] or 'no code'}")
            self._wait(_pause_s(answer))
        raise SourceError(f"{self._url} refuses the query: THROTTLED {TRIES} times")


def _pause_s(answer: object) -> float:
    """Return the seconds until the budget of the shop is enough for the query."""
    cost = mapping(lookup(answer, "extensions.cost"))
    status = mapping(cost.get("throttleStatus"))
    left, rate = status.get("currentlyAvailable"), status.get("restoreRate")
    given = cost.get("requestedQueryCost"), left, rate
    numbers = [float(each) for each in given if isinstance(each, (int, float))]
    if len(numbers) < len(given) or numbers[2] <= 0:
        return 1.0
    return min(max((numbers[0] - numbers[1]) / numbers[2], 1.0), LONGEST_PAUSE_S)


def _is_public(row: Fields) -> bool:
    return row.get("isPublished") is not False and row.get("status") in {None, "ACTIVE"}


def _page(name: str, row: Fields) -> SentPage:
    if name in shopify.KINDS:
        image = text(row, "featuredMedia.preview.image.url") or text(row, "image.url")
        said = {
            **row,
            "updated_at": row.get("updatedAt"),
            "published_at": row.get(_PUBLIC),
            "image": {"src": image},
        }
        return shopify.page(name, text(row, "legacyResourceId"), said)
    members = {
        "lastmod": date(row, "updatedAt"),
        "published": date(row, _PUBLIC),
        "title": text(row, "title"),
    }
    kind, number = name.removesuffix("s"), text(row, "id").rpartition("/")[2]
    return SentPage(kind, number, row, default=_ADDRESSES[name], members=members)
