"""Published nodes and terms of Drupal, by JSON:API (drupal.org/docs/core-modules-and-themes/
core-modules/jsonapi-module).

The address is that of the site, drupal:https://www.example.com. JSON:API gives a collection in the
language of its path, so each of `locales` is read below /LANGUAGE/jsonapi, and what is in none of
them without a prefix. Entities are read by their numbers: those that come or go move no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shared.cms import drupal
from shared.cms.fields import Fields, mapping, text
from shared.errors import SourceError
from shared.events.permalinks import lookup
from worker.sources.cms.cms_pages import CmsPages, split
from worker.sources.cms.collection_parts import Part, entries, objects
from worker.sources.json_api import JsonApi
from worker.sources.records import Item, RecordRefusal
from worker.sources.source_options import SourceOptions

PER_PART = 50
"""Entities per request, the maximum of JSON:API."""

_NUMBERS = {"node": "drupal_internal__nid", "taxonomy_term": "drupal_internal__tid"}
_READ = ("langcode", "status", "created", "changed", "path")


class _Bundle(NamedTuple):
    """A content type or vocabulary: its entity type, its name, and the address of its entities."""

    kind: str
    name: str
    url: str


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every published node and term, of all types or of those behind the address.

    Raises SourceError if one cannot be read to its end.
    """
    root, chosen = split(address)
    pages = CmsPages("drupal", access)
    user, _, password = access.key.partition(":")
    auth = (user, password) if access.key else None
    with JsonApi(root, auth, wait=access.wait) as api:
        for prefix in ("", *(f"{locale}/" for locale in pages.connection.locales)):
            for bundle in _bundles(api, f"{root}{prefix}jsonapi", chosen, pages):
                found = _Entities(api, bundle, pages, prefix.rstrip("/"))
                yield from pages.of(bundle.name, found.items())


def _bundles(api: JsonApi, index: str, chosen: str, pages: CmsPages) -> list[_Bundle]:
    """Return the types that JSON:API lists and that are pages."""
    links = mapping(lookup(api.get(index).value, "links"))
    known = [name.partition("--") for name in links if name.partition("--")[0] in drupal.PLAIN]
    bundles = [
        _Bundle(kind, name, f"{index}/{kind}/{name}")
        for kind, _, name in known
        if name not in pages.connection.ignore
    ]
    if not bundles:
        raise SourceError(f"{index} is no index of JSON:API with nodes or terms")
    wanted = [name.strip() for name in chosen.split(",") if name.strip()]
    names = {bundle.name for bundle in bundles}
    if unknown := [name for name in wanted if name not in names]:
        raise SourceError(f"Drupal has no type {unknown[0][:64]}; there are: {', '.join(names)}")
    return [bundle for bundle in bundles if not wanted or bundle.name in wanted]


class _Entities:
    """The published entities of a type in one of the `locales`, or in none (empty)."""

    def __init__(self, api: JsonApi, bundle: _Bundle, pages: CmsPages, locale: str) -> None:
        self._api, self._bundle, self._pages, self._locale = api, bundle, pages, locale

    def items(self) -> Iterator[Item]:
        kind, name = self._bundle.kind, self._bundle.name
        for entity in entries(name, self._part):
            if isinstance(entity, RecordRefusal):
                yield entity
                continue
            fields, number = drupal.flat(entity), text(entity, "id")
            if not number:
                raise SourceError(f"{self._bundle.url} gives entities without an id")
            # Below /de/ Drupal also lists what has no German translation, in its own language.
            language = str(fields.get("langcode") or "")
            if (language if language in self._pages.connection.locales else "") == self._locale:
                yield self._pages.item(drupal.page(kind, name, number, fields))

    def _part(self, after: int | None) -> Part:
        kind, name, url = self._bundle
        number = _NUMBERS[kind]
        more = [path.partition(".")[0] for path in self._pages.fields(name)]
        read: dict[str, str | int] = {
            "filter[status]": 1, "sort": number, "page[limit]": PER_PART,
            "filter[after][condition][path]": number,
            "filter[after][condition][operator]": ">",
            "filter[after][condition][value]": after or 0,
            f"fields[{kind}--{name}]": ",".join(dict.fromkeys([number, *_READ, *more])),
        }  # fmt: skip
        answer = self._api.get(url, **read).value
        rows = objects(answer, "data", url)
        if not rows or not lookup(answer, "links.next"):
            return Part(rows, None)
        last = _number(rows[-1], number)
        if last is None:
            raise SourceError(f"{url} gives entities without {number}")
        return Part(rows, last)


def _number(row: Fields, name: str) -> int | None:
    found = lookup(row, f"attributes.{name}")
    return found if type(found) is int else None
