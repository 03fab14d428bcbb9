"""Public items of Directus, by its REST API (directus.io/docs/api/items).

Items are read by their keys: those that come or go meanwhile move no others. A key is a static
token of a user who may read the collections; without one Directus shows what everybody may see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shared.cms import directus
from shared.errors import SourceError
from worker.sources.cms.cms_pages import CmsPages, split
from worker.sources.cms.collection_parts import Part, entries, objects
from worker.sources.cms.json_api import JsonApi
from worker.sources.records import Item, RecordRefusal
from worker.sources.source_fetch import ServerAnswerError
from worker.sources.source_options import SourceOptions

PER_PART = 100
"""Items per request, the default of Directus."""


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every public item of the collections with permalinks, or of those behind the address.

    Raises SourceError if one cannot be read to its end.
    """
    root, chosen = split(address)
    pages = CmsPages("directus", access)
    secret = ("Authorization", f"Bearer {access.key}") if access.key else None
    with JsonApi(root, secret=secret, wait=access.wait) as api:
        for kind, name in pages.kinds(chosen).items():
            found = _Collection(api, root, name, pages.fields(kind))
            yield from pages.of(kind, _items(kind, found, pages))


def _items(kind: str, found: _Collection, pages: CmsPages) -> Iterator[Item]:
    for row in entries(kind, found.part):
        if isinstance(row, RecordRefusal):
            yield row
        elif directus.is_public(row):
            yield pages.item(directus.page(kind, str(row[found.key]), row))


class _Collection:
    """One collection: the name of its primary key, and the fields of it that make pages."""

    def __init__(self, api: JsonApi, root: str, name: str, needed: list[str]) -> None:
        self._api, self._url = api, f"{root}items/{name}"
        self.key, self._fields = "id", "*"
        try:
            fields = objects(api.get(f"{root}fields/{name}").value, "data", name)
        except ServerAnswerError as error:
            if error.status not in {401, 403}:
                raise
            return  # it may not be told what fields there are
        known = {str(row.get("field")): row.get("schema") for row in fields}
        keys = [n for n, schema in known.items() if schema and schema.get("is_primary_key")]
        self.key = keys[0] if keys else "id"
        wanted = [self.key, *directus.READ, *needed]
        self._fields = ",".join(n for n in dict.fromkeys(wanted) if n.partition(".")[0] in known)

    def part(self, after: Any) -> Part:
        """Return the items behind the key `after`."""
        read: dict[str, str | int] = {
            "fields": self._fields, "sort": self.key, "limit": PER_PART,
        }  # fmt: skip
        if after is not None:
            read[f"filter[{self.key}][_gt]"] = after
        rows = objects(self._api.get(self._url, **read).value, "data", self._url)
        if not all(isinstance(row.get(self.key), (str, int)) for row in rows):
            raise SourceError(f"{self._url} gives items without their key {self.key}")
        return Part(rows, rows[-1][self.key] if rows else None)
