"""Published entries of Strapi 5, by its REST API (docs.strapi.io/cms/api/rest).

Entries are read by document id: those that come or go meanwhile move no others. A key is an API
token that may `find` the types; without one Strapi shows what its public role may see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shared.cms import strapi
from shared.cms.fields import Fields, text
from shared.errors import SourceError
from worker.sources.cms.cms_pages import CmsPages, split
from worker.sources.cms.collection_parts import Part, entries, number, objects
from worker.sources.json_api import JsonApi
from worker.sources.records import Item, RecordRefusal
from worker.sources.source_fetch import ServerAnswerError
from worker.sources.source_options import SourceOptions

PER_PART = 100
"""Entries per request, the maximum of Strapi as it is installed."""

_SEO = {"populate[seo][fields][0]": "canonicalURL"}
_ENDINGS = {"y": "ies", "s": "ses", "x": "xes", "ch": "ches", "sh": "shes"}


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every published entry of the types with permalinks, or of those behind the address.

    Raises SourceError if one cannot be read to its end.
    """
    root, chosen = split(address, "api/")
    pages = CmsPages("strapi", access)
    secret = ("Authorization", f"Bearer {access.key}") if access.key else None
    with JsonApi(root, secret=secret, wait=access.wait) as api:
        for kind, name in pages.kinds(chosen).items():
            plural = name if name != kind else _plural(kind)
            yield from pages.of(kind, _Type(api, f"{root}{plural}", kind).items(pages))


class _Type:
    """One content type, at `url`."""

    def __init__(self, api: JsonApi, url: str, kind: str) -> None:
        self._api, self._url, self._kind = api, url, kind
        self._more = _SEO
        self._last: list[tuple[str, str]] = []

    def items(self, pages: CmsPages) -> Iterator[Item]:
        for entry in entries(self._kind, self._part):
            if isinstance(entry, RecordRefusal):
                yield entry
                continue
            page = strapi.page(self._kind, entry)
            if page is None:
                raise SourceError(
                    f"{self._url} gives entries without a documentId: is it Strapi 5?"
                )
            yield pages.item(page)

    def _part(self, after: Any) -> Part:
        """Return the entries from a document on, without those of it that were read.

        `after` is the document, and how many entries of it were read.
        """
        read: dict[str, str | int] = {
            "locale": "*", "status": "published", "sort": "documentId",
            "pagination[pageSize]": PER_PART, "pagination[withCount]": "false",
        }  # fmt: skip
        if after is not None:
            read["filters[documentId][$gte]"] = after[0]
        answer = self._asked(read)
        rows = objects(answer, "data", self._url)
        new = [row for row in rows if _key(row) not in self._last]
        if not new:  # Strapi may be configured to give fewer than were asked for
            if len(rows) == number(answer, "meta.pagination.pageSize", self._url):
                raise SourceError(f"{self._url}: a document has more languages than a part holds")
            return Part(new, None)
        document = text(rows[-1], "documentId")
        self._last = [_key(row) for row in rows if row.get("documentId") == document]
        return Part(new, (document, len(self._last)))

    def _asked(self, read: dict[str, str | int]) -> Any:
        try:
            return self._api.get(self._url, **read, **self._more).value
        except ServerAnswerError as error:
            if error.status == 400 and self._more:  # a type without the component seo
                self._more = {}
                return self._asked(read)
            if error.status == 404:
                raise SourceError(
                    f"{error}: name its plural behind the address, #{self._kind}=plural"
                ) from None
            raise


def _key(row: Fields) -> tuple[str, str]:
    return text(row, "documentId"), text(row, "locale")


def _plural(kind: str) -> str:
    """Return the plural that Strapi proposes for a type."""
    for ending, plural in _ENDINGS.items():
        if kind.endswith(ending) and not kind.endswith(("ay", "ey", "oy", "uy")):
            return kind.removesuffix(ending) + plural
    return f"{kind}s"
