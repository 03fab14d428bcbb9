"""Public items of Directus, by its REST API (directus.io/docs/api/items).

Items with numbers are read by these: those that come or go meanwhile move no others. Directus
compares no other keys; such items are counted, and their number shows that some were moved. A key
is a static token of a user who may read the collections; without one Directus shows what everybody
may see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shared.cms import directus
from shared.cms.fields import text
from shared.errors import SourceError
from shared.events.permalinks import lookup
from worker.sources.cms.cms_pages import CmsPages, split
from worker.sources.cms.collection_parts import Part, entries, number, objects
from worker.sources.json_api import JsonApi
from worker.sources.records import Item, RecordRefusal
from worker.sources.source_fetch import ServerAnswerError
from worker.sources.source_options import SourceOptions

_NUMBERS = frozenset({"integer", "bigInteger"})
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
        self.key, self._fields, self._numbered = "id", "*", False
        try:
            fields = objects(api.get(f"{root}fields/{name}").value, "data", name)
        except ServerAnswerError as error:
            if error.status not in {401, 403}:
                raise
            return  # it may not be told what fields there are
        known = {str(row.get("field")): row for row in fields}
        keys = [name for name, row in known.items() if lookup(row, "schema.is_primary_key")]
        self.key = keys[0] if keys else "id"
        self._numbered = text(known.get(self.key), "type") in _NUMBERS
        wanted = [self.key, *directus.READ, *needed]
        self._fields = ",".join(n for n in dict.fromkeys(wanted) if n.partition(".")[0] in known)

    def part(self, after: Any) -> Part:
        """Return the items behind the key `after`."""
        read: dict[str, str | int] = {
            "fields": self._fields, "sort": self.key, "limit": PER_PART,
        }  # fmt: skip
        if self._numbered:
            read |= {} if after is None else {f"filter[{self.key}][_gt]": after}
        else:
            read |= {"offset": after or 0, "meta": "filter_count"}
        answer = self._api.get(self._url, **read).value
        rows = objects(answer, "data", self._url)
        if not all(isinstance(row.get(self.key), (str, int)) for row in rows):
            raise SourceError(f"{self._url} gives items without their key {self.key}")
        if self._numbered:
            return Part(rows, rows[-1][self.key] if rows else None)
        total = number(answer, "meta.filter_count", self._url)
        return Part(rows, (after or 0) + len(rows) if rows else None, total)
