"""Public pages of a WordPress site, by its REST API (developer.wordpress.org/rest-api).

All published content of every type that the API shows, categories, tags and the home page, as in
WordPress's own sitemap; `#posts,pages,users` after the address selects other collections, by their
`rest_base`. A key `user:application password` is for sites that require one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urldefrag, urljoin

from shared.cms.fields import Fields
from shared.errors import SourceError
from worker.sources.cms.collection_parts import by_offset
from worker.sources.json_api import JsonApi, text
from worker.sources.records import STATED, Item, RecordRefusal, SourceRecord
from worker.sources.source_options import SourceOptions
from worker.sources.xml.entry_records import check_loc

PER_PAGE = 100
"""Objects per request, the maximum of WordPress."""

_POST_FIELDS = "id,link,modified_gmt,status,content.protected"
_INNER = frozenset({"attachment", "nav_menu_item"})
_TERMS = {"categories": "categories", "tags": "tags", "users": "users"}
_SILENT = STATED - {"lastmod"} | {"section"}


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every page of the site at `address`, collection by collection, oldest first.

    The section of a page is the name of its collection. Raises SourceError if one cannot be read to
    its end: missing pages cannot be told from deleted ones.
    """
    url, chosen = urldefrag(address)
    root = url if url.endswith("/") else f"{url}/"
    user, _, password = access.key.partition(":")
    auth = (user, password) if access.key else None
    with JsonApi(root, auth, wait=access.wait) as api:
        site = _Site(api, root)
        wanted = [name.strip() for name in chosen.split(",") if name.strip()]
        if not wanted:
            home = text(site.index.get("home")) or root
            # The date of the home page itself is unknown.
            yield SourceRecord(urljoin(f"{home}/", "."), home, silent=_SILENT | STATED)
        types = site.types()
        for name in wanted or [*types, "categories", "tags"]:
            if name in types:
                yield from site.posts(name, types[name])
            elif name in _TERMS:
                yield from site.terms(name)
            else:
                known = ", ".join([*types, *_TERMS])
                raise SourceError(f"{root} has no collection {name[:64]}; there are: {known}")


class _Site:
    """One site: the address of its API, with pretty permalinks or without."""

    def __init__(self, api: JsonApi, root: str) -> None:
        self._api = api
        self._root = f"{root}wp-json"
        self.index: dict[str, Any]
        try:
            self.index = self._object("/")
        except SourceError as error:
            self._root = f"{root}?rest_route="
            try:
                self.index = self._object("/")
            except SourceError:
                raise SourceError(f"no WordPress REST interface: {error}") from None

    def _object(self, path: str) -> dict[str, Any]:
        value = self._api.get(f"{self._root}{path}", _fields="home,namespaces").value
        if not isinstance(value, dict) or "namespaces" not in value:
            raise SourceError(f"{self._root}{path} is no index of a WordPress REST interface")
        return value

    def types(self) -> dict[str, str]:
        """Return the paths of the content collections by `rest_base`."""
        found = self._api.get(f"{self._root}/wp/v2/types").value
        if not isinstance(found, dict):
            raise SourceError("WordPress names no types")
        types = {}
        for slug, kind in found.items():
            base = text(kind.get("rest_base")) if isinstance(kind, dict) else ""
            if base and slug not in _INNER and not slug.startswith("wp_"):
                types[base] = f"/{text(kind.get('rest_namespace')) or 'wp/v2'}/{base}"
        return types

    def posts(self, name: str, path: str) -> Iterator[Item]:
        """Yield the published content of one type."""
        for row in self._rows(path, _fields=_POST_FIELDS, status="publish"):
            where, loc = f"{name}#{row['id']}", text(row.get("link"))
            content = row.get("content")
            if row.get("status", "publish") != "publish":
                yield RecordRefusal(where, "L8", f"its status is {row['status']}", loc)
            elif isinstance(content, dict) and content.get("protected"):
                yield RecordRefusal(where, "L8", "it is protected by a password", loc)
            else:
                changed = text(row.get("modified_gmt"))
                yield _record(loc, where, name, f"{changed}Z" if changed else None)

    def terms(self, name: str) -> Iterator[Item]:
        """Yield the archives of one taxonomy, or of the authors; empty terms have none."""
        more = {} if name == "users" else {"hide_empty": "true"}
        for row in self._rows(f"/wp/v2/{name}", _fields="id,link", **more):
            yield _record(text(row.get("link")), f"{name}#{row['id']}", name, None)

    def _rows(self, path: str, **parameters: str) -> Iterator[Fields]:
        yield from by_offset(path, lambda at: self._page(path, at, parameters), PER_PAGE)

    def _page(
        self, path: str, offset: int, parameters: dict[str, str]
    ) -> tuple[list[dict[str, Any]], int]:
        answer = self._api.get(
            f"{self._root}{path}", per_page=PER_PAGE, offset=offset, orderby="id", order="asc",
            **parameters,
        )  # fmt: skip
        rows, stated = answer.value, answer.headers.get("x-wp-total", "")
        sound = isinstance(rows, list) and all(
            isinstance(row, dict) and type(row.get("id")) is int for row in rows
        )
        if not sound or not (stated.isascii() and stated.isdigit()):
            raise SourceError(f"{path} is no collection of WordPress (objects, X-WP-Total)")
        return rows, int(stated)


def _record(
    loc: str, where: str, section: str, lastmod: str | None
) -> SourceRecord | RecordRefusal:
    silent = _SILENT if lastmod else _SILENT | {"lastmod"}
    return check_loc(loc, where) or SourceRecord(
        loc, where, lastmod, extra={"section": section}, silent=silent
    )
