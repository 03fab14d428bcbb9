"""Public pages of Wagtail, by its API v2 (docs.wagtail.org, "Wagtail API v2 usage guide").

The API shows live pages without privacy restrictions, with their addresses. Their dates are in it
once a project adds "last_published_at" to the `body_fields` of its PagesAPIViewSet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from shared.cms.fields import Fields, ident, text
from shared.errors import SourceError
from worker.sources.cms.cms_pages import split
from worker.sources.cms.collection_parts import by_offset, number, objects
from worker.sources.json_api import JsonApi
from worker.sources.records import STATED, Item, RecordRefusal, SourceRecord
from worker.sources.source_fetch import ServerAnswerError
from worker.sources.source_options import SourceOptions
from worker.sources.xml.entry_records import check_loc

PER_PART = 100
USUAL = 20
"""Pages per request, and the maximum of a Wagtail without WAGTAILAPI_LIMIT_MAX."""

_DATE = "last_published_at"


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every page that the API at `address` shows to strangers, oldest first.

    Raises SourceError if it cannot be read to its end.
    """
    root, _ = split(address, "api/v2/")
    with JsonApi(root, wait=access.wait) as api:
        yield from (_page(row) for row in _Pages(api, f"{root}pages/").rows())


class _Pages:
    """The pages of one API, at `url`."""

    def __init__(self, api: JsonApi, url: str) -> None:
        self._api, self._url = api, url
        self._size, self._fields = PER_PART, f"_,id,html_url,{_DATE}"

    def rows(self) -> Iterator[Fields]:
        """Yield all pages by id."""
        self._learn()
        yield from by_offset(self._url, self._rows, self._size)

    def _learn(self) -> None:
        """Find out which of our wishes this Wagtail refuses: the fields, the size."""
        sizes, fields = (PER_PART, USUAL), (self._fields, "_,id,html_url")
        for self._size in sizes:
            for self._fields in fields:
                try:
                    self._rows(0)
                except ServerAnswerError as error:
                    if error.status != 400 or (self._size, self._fields) == (sizes[1], fields[1]):
                        raise
                else:
                    return

    def _rows(self, offset: int) -> tuple[Sequence[Fields], int]:
        answer = self._api.get(
            self._url, order="id", limit=self._size, offset=offset, fields=self._fields
        ).value
        rows = objects(answer, "items", self._url)
        if not all(type(row.get("id")) is int for row in rows):
            raise SourceError(f"{self._url} gives pages without a number: is it Wagtail?")
        return rows, number(answer, "meta.total_count", self._url)


def _page(row: Fields) -> SourceRecord | RecordRefusal:
    key, loc = ident(row, "id"), text(row, "meta.html_url")
    where, lastmod = f"pages#{key}", _date(text(row, _DATE))
    if not loc:
        return RecordRefusal(where, "L8", "the site has no route to it")
    silent = STATED - {"lastmod"} if _DATE in row else STATED
    return check_loc(loc, where) or SourceRecord(
        loc, where, lastmod, extra={"id": str(key)}, silent=silent, owner=("wagtail", "", "")
    )


def _date(given: str) -> str | None:
    """Return a time in the form in which the client of `sitemapd connect wagtail` sends it."""
    try:
        return datetime.fromisoformat(given).astimezone(UTC).isoformat(timespec="seconds")
    except ValueError:
        return None
