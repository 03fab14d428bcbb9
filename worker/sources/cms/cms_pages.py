"""Pages of a CMS that knows no addresses, by the permalinks of its connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urldefrag

from shared.cms.pages import CmsSite, NoPageError, SentPage
from shared.config.sites.cms_connections import Connection
from shared.errors import SourceError, UrlError
from shared.events.permalinks import PermalinkError, check
from shared.sitemap import urls
from worker.sources.records import STATED, Item, RecordRefusal, SourceRecord
from worker.sources.source_options import SourceOptions
from worker.sources.xml.entry_records import check_loc

_DATED = frozenset({"lastmod"})
_ROOT = 3  # slashes of an address without a path
_EXTRAS = frozenset({"section", "published", "title"})


class CmsPages:
    """Pages of the CMS `name` by its connection to the site: as its events would list them."""

    def __init__(self, name: str, access: SourceOptions) -> None:
        self.name = name
        self.connection = access.connections.get(name) or Connection.model_validate({})
        self._cms = CmsSite(name, self.connection, access.origin)

    def kinds(self, chosen: str) -> dict[str, str]:
        """Return the types to read, each with its name in the interface, `article=articles`.

        They are `chosen` behind the address, else those that have permalinks. Raises SourceError
        if there are none.
        """
        named = [kind.partition("=") for kind in map(str.strip, chosen.split(",")) if kind]
        found = {kind: other or kind for kind, _, other in named}
        if not found:
            kinds = [kind.partition(":")[0] for kind in self.connection.permalinks if kind != "*"]
            found = {kind: kind for kind in kinds}
        found = {k: name for k, name in found.items() if k not in self.connection.ignore}
        if not found:
            raise SourceError(
                f"{self.name} has no types to read: add permalinks to sources.{self.name}, or name "
                f"the types behind the address, {self.name}:https://...#article,page"
            )
        return found

    def fields(self, kind: str) -> list[str]:
        """Return the names of the fields that the permalinks of a type need, in any language."""
        templates = [
            template
            for name, template in self.connection.permalinks.items()
            if name.partition(":")[0] in {kind, "*"}
        ]
        parts = (part for template in templates for part in check(template))
        return [*dict.fromkeys(part.path for part in parts if not isinstance(part, str))]

    def item(
        self, page: SentPage, stated: frozenset[str] = _DATED, kept: frozenset[str] = frozenset()
    ) -> SourceRecord | RecordRefusal:
        """Return a page; a refusal if it has no address or must not be listed (PROTOCOL L8).

        `stated` are the fields that the CMS has a place for; those in `kept` apply to new pages
        only.
        """
        where = f"{page.kind}#{page.ident}"
        try:
            change = self._cms.upsert(page)
        except (NoPageError, PermalinkError) as error:
            return RecordRefusal(where, "L8", str(error))
        item: dict[str, Any] = dict(change.item)
        loc = item["loc"]
        if why := _unlisted(item, loc):
            return RecordRefusal(where, "L8", why, loc)
        extra = {name: item[name] for name in _EXTRAS & item.keys()}
        return check_loc(loc, where) or SourceRecord(
            loc, where, item.get("lastmod"), images=item.get("images", ()),
            extra={"id": str(page.ident), **extra}, silent=STATED - stated | kept,
            owner=(self.name, change.kind, change.locale),
        )  # fmt: skip

    def of(self, kind: str, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items of a type.

        If entries were found and none is a page, its permalink may name a wrong field: a refusal
        says that the pages are unknown, so that none is deleted.
        """
        pages, last = 0, None
        for item in items:
            if isinstance(item, SourceRecord):
                pages += 1
            elif isinstance(item, RecordRefusal):
                last = item
            yield item
        if last is not None and not pages and not last.whole and last.loc is None:
            detail = f"none of its entries has an address: {last.detail}"
            yield RecordRefusal(kind, "permalink", detail, whole=True)


def split(address: str, usual: str = "") -> tuple[str, str]:
    """Return the address of an interface with its final slash, and what was chosen behind it.

    An address without a path has the `usual` one.
    """
    url, chosen = urldefrag(address)
    root = url if url.endswith("/") else f"{url}/"
    return (f"{root}{usual}" if root.count("/") == _ROOT else root), chosen


def _unlisted(item: dict[str, Any], loc: str) -> str:
    if item.get("noindex"):
        return "the page is marked noindex"
    canonical = item.get("canonical")
    if canonical is None:
        return ""
    try:
        same = urls.absolute(canonical) == urls.absolute(loc)
    except UrlError:  # an event with it is taken without it
        return ""
    return "" if same else "the page names another canonical address"
