"""Public pages of a Ghost site, by its Content API (docs.ghost.org/content-api).

Posts, pages, tags and authors that have posts, and the home page, as in Ghost's own sitemap. The
API key (Settings, Integrations) is part of every requested address, and of no report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shared.cms.fields import Fields
from shared.errors import SourceError
from worker.sources.cms.collection_parts import Part, entries
from worker.sources.json_api import JsonApi, text
from worker.sources.records import STATED, Item, RecordRefusal, SourceRecord
from worker.sources.source_options import SourceOptions
from worker.sources.xml.entry_records import check_loc

PER_PAGE = 100
"""Objects per request, the maximum of Ghost 6."""

_COLLECTIONS = {
    "posts": "id,url,updated_at,canonical_url", "pages": "id,url,updated_at,canonical_url",
    "tags": "id,url,updated_at,canonical_url,visibility", "authors": "id,url",
}  # fmt: skip
_SILENT = STATED - {"lastmod"} | {"section"}


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every page of the site at `address`.

    The section of a page is the name of its collection. Raises SourceError without a key, and if a
    collection cannot be read to its end.
    """
    if not access.key:
        raise SourceError("Ghost asks for the key of its Content API")
    root = address if address.endswith("/") else f"{address}/"
    with JsonApi(root, wait=access.wait) as api:
        yield SourceRecord(root, root, silent=_SILENT | STATED)
        for name in _COLLECTIONS:
            yield from _collection(api, f"{root}ghost/api/content/{name}/", name, access.key)


def _collection(api: JsonApi, url: str, name: str, key: str) -> Iterator[Item]:
    """Yield the pages of a collection.

    Ghost counts by pages: a deletion during the read moves others up unseen.
    """

    def part(number: int | None) -> Part:
        answer = api.get(
            url, key=key, limit=PER_PAGE, page=number or 1, order="id asc",
            fields=_COLLECTIONS[name],
        ).value  # fmt: skip
        rows, paging = _parts(answer, name)
        if paging["next"] and not rows:
            raise SourceError(f"the {name} of Ghost end before {paging['total']}")
        return Part(rows, paging["next"] or None, paging["total"])

    for row in entries(name, part):
        yield row if isinstance(row, RecordRefusal) else _page(row, name)


def _parts(answer: Any, name: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    try:
        rows, paging = answer[name], answer["meta"]["pagination"]
        sound = all(isinstance(row, dict) for row in rows) and type(paging["total"]) is int
        sound = sound and (paging["next"] is None or type(paging["next"]) is int)
    except (TypeError, KeyError):
        sound = False
    if not sound:
        raise SourceError(f"the {name} are no collection of Ghost ({name}, meta.pagination)")
    return rows, paging


def _page(row: Fields, name: str) -> SourceRecord | RecordRefusal:
    where, loc = f"{name}#{text(row.get('id'))}", text(row.get("url"))
    if text(row.get("visibility")) == "internal":
        return RecordRefusal(where, "L8", "the tag is internal", loc)
    if loc.endswith("/404/"):
        return RecordRefusal(where, "L8", "the site has no route to it", loc)
    if text(row.get("canonical_url")) not in {"", loc}:
        return RecordRefusal(where, "L8", "the page names another canonical address", loc)
    lastmod = text(row.get("updated_at")) or None
    silent = _SILENT if lastmod else _SILENT | {"lastmod"}
    return check_loc(loc, where) or SourceRecord(
        loc, where, lastmod, extra={"section": name}, silent=silent
    )
