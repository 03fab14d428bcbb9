"""Reader of sitemaps in every published form, and of the indexes that list them."""

from __future__ import annotations

import re
from html import unescape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from shared.errors import SourceError, UnusableSourceError
from worker.sources.records import PARTIAL, Item, RecordRefusal, SourceCounts, SourceRecord
from worker.sources.source_fetch import client, fetch
from worker.sources.source_options import NO_ACCESS, SourceOptions
from worker.sources.source_streams import (
    CHUNK,
    GZIP_MAGIC,
    PROTOCOL_LIMIT,
    Document,
    SourceBody,
    open_file,
)
from worker.sources.text_lists import addresses
from worker.sources.xml import entry_records
from worker.sources.xml.encodings import as_utf8
from worker.sources.xml.format_detection import find_root, is_text_list
from worker.sources.xml.xml_entries import XmlEntries, XmlEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from worker.http.client import HttpClient
    from worker.sources.source_validators import SourceValidators

    _Entries = Iterator[XmlEntry | SourceRecord | RecordRefusal]

_NAMESPACES = {
    "urlset": "http://www.sitemaps.org/schemas/sitemap/0.9",
    "sitemapindex": "http://www.sitemaps.org/schemas/sitemap/0.9",
    "rss": "",
    "feed": "http://www.w3.org/2005/Atom",
}
_PAGES: dict[str, Callable[[XmlEntry, str, SourceCounts], SourceRecord | RecordRefusal]] = {
    "urlset": entry_records.from_urlset,
    "sitemapindex": entry_records.from_urlset,
    "rss": entry_records.from_rss,
    "feed": entry_records.from_atom,
}
_INDEX_LOOK = 4 * 1024 * 1024  # bytes of an index read for an estimate: some 40,000 files
_FEEDS = frozenset({"rss", "feed"})
_MOST = 50_000  # PROTOCOL F7, F8


def read_sitemap(address: str, access: SourceOptions = NO_ACCESS) -> Iterator[Item]:
    """Yield the pages of a sitemap, feed or text list at a path or URL; an index is followed one
    level. Their validators are added to those of `access`.

    Raises SourceError where nothing at the address can be read.
    """
    if not is_url(address):
        with open_file(Path(address)) as top:
            yield from _Reader(top).items()
        return
    with client(address) as http, fetch(http, address) as top:
        access.validators.add(address, top.headers)
        yield from _Reader(top, http, validators=access.validators).items()


def pages_in(document: Document) -> Iterator[Item]:
    """Yield the pages of an opened sitemap, feed or text list; an index is refused.

    Raises SourceError where nothing in it can be read.
    """
    return _Reader(document, nested=True).items()


def listed_files(path: Path) -> set[Path]:
    """Return the files on disk that an index lists, without parsing; empty for anything else.

    Raises SourceError where the file cannot be opened.
    """
    with open_file(path) as document:
        head = _read_head(SourceBody(document.file), _INDEX_LOOK)
    if b"<sitemapindex" not in head[:CHUNK]:
        return set()
    locs = re.findall(rb"<loc>\s*(?:<!\[CDATA\[)?\s*([^\s<\]]+)", head)
    found = (beside(path, unescape(loc.decode(errors="replace"))) for loc in locs)
    return {file for file in found if file is not None}


def is_url(address: str) -> bool:
    return re.match(r"(?i)https?://", address) is not None


def beside(index: Path, loc: str) -> Path | None:
    """Return the file that an index on disk means by `loc`: the longest tail of its path found
    beside it.

    A file is also found by its name with or without `.gz`. An address with a query is only found
    under that exact name, because several of them share one path.
    """
    try:
        parts = urlsplit(loc)
    except ValueError:  # a bracket in the host, for example
        return None
    names = [unquote(part) for part in parts.path.split("/") if part]
    if not names or any(name in {".", ".."} or "/" in name or "\0" in name for name in names):
        return None
    last = names.pop()
    if parts.query:
        variants = [f"{last}?{parts.query}"]
    else:
        variants = [last, f"{last}.gz", last.removesuffix(".gz")]
    for skip in range(len(names) + 1):
        for variant in variants:
            path = index.parent.joinpath(*names[skip:], variant)
            if path.is_file():
                return path
    return None


class _Reader:
    """Reader of one document and, unless `nested`, of the documents it lists if it is an index.

    With an HTTP client these are fetched, without one they are searched on disk only: reading a
    local file never uses the network.
    """

    def __init__(
        self, document: Document, http: HttpClient | None = None, *, nested: bool = False,
        validators: SourceValidators | None = None,
    ) -> None:  # fmt: skip
        self._document, self._http, self._nested = document, http, nested
        self._validators = validators
        self._name = document.name
        self._tally = SourceCounts(self._name)

    def items(self) -> Iterator[Item]:
        body = SourceBody(self._document.file)
        head = _read_head(body)
        try:
            yield from self._content(head, body)
        except UnusableSourceError as error:
            yield RecordRefusal(self._name, error.rule, str(error))
        if body.fault:
            yield RecordRefusal(self._name, *body.fault)
        elif body.size > PROTOCOL_LIMIT:
            self._tally.add("F7", f"{body.size} bytes, more than the {PROTOCOL_LIMIT} allowed")
        yield from self._tally.notes()

    def _content(self, head: bytes, body: SourceBody) -> Iterator[Item]:
        if head.startswith(GZIP_MAGIC):
            raise UnusableSourceError("F9", "compressed twice; nothing was read")
        if not head.strip():
            why = f": {body.fault[1]}" if body.fault else ""
            raise SourceError(f"{self._name} {'gives nothing' if why else 'is empty'}{why}")
        chunks = as_utf8(head, body, self._tally)
        start = next(chunks)
        if is_text_list(start):
            count = 0
            for item in addresses(chain([start], chunks), self._name):
                count += 1
                yield item
            self._note_count(count, "F7")
            return
        root = find_root(start, self._tally)
        markup = XmlEntries(self._name, root, self._tally)
        self._check_root(root.kind, markup)
        found = markup.entries(chain([start[root.start :]], chunks))
        is_index = root.kind == "sitemapindex"
        yield from self._index(found) if is_index else self._pages(found, root.kind)
        self._note_count(markup.count, "F8" if is_index else "F7")
        if root.kind in _FEEDS:
            self._tally.add(PARTIAL, "a feed names the newest pages only")

    def _check_root(self, kind: str, markup: XmlEntries) -> None:
        element = markup.root_element()
        namespace = element.tag.rpartition("}")[0].removeprefix("{")
        if namespace != _NAMESPACES[kind]:
            rule = "F1" if kind in {"urlset", "sitemapindex"} else "F11"
            stated = namespace[:80] or "none"
            self._tally.add(rule, f"the namespace is {stated}, read by local names")
        if kind == "rss" and element.get("version") != "2.0":
            self._tally.add("F11", f"RSS version {element.get('version')}, read like 2.0")

    def _note_count(self, count: int, rule: str) -> None:
        if count == 0:
            self._tally.add("F12", "lists nothing")
        elif count > _MOST:
            self._tally.add(rule, f"{count} entries, more than the {_MOST} allowed")

    def _pages(self, found: _Entries, kind: str) -> Iterator[Item]:
        page = _PAGES[kind]
        for entry in found:
            if isinstance(entry, XmlEntry):
                yield page(entry, f"{self._name}#{entry.number}", self._tally)
            else:
                yield entry

    def _index(self, found: _Entries) -> Iterator[Item]:
        if self._nested:
            raise UnusableSourceError("N1", "an index inside an index is not followed")
        seen: set[str] = set()
        for child in self._pages(found, "sitemapindex"):
            if not isinstance(child, SourceRecord):
                yield child
            elif child.loc in seen:
                yield RecordRefusal(child.where, "N4", "listed twice; read once", child.loc)
            else:
                seen.add(child.loc)
                yield from self._child(child)

    def _child(self, child: SourceRecord) -> Iterator[Item]:
        try:
            with self._open(child.loc) as document:
                yield from _Reader(document, self._http, nested=True).items()
        except SourceError as error:
            rule = error.rule if isinstance(error, UnusableSourceError) else "N4"
            yield RecordRefusal(child.where, rule, str(error), child.loc, whole=True)

    def _open(self, loc: str) -> Document:
        place = self._document.place
        if self._http is not None and isinstance(place, str):
            try:
                url = urljoin(place, loc)
            except ValueError as error:
                raise SourceError(f"not a URL: {error}") from error
            document = fetch(self._http, url, within=place)
            if self._validators is not None:
                self._validators.add(url, document.headers)
            return document
        path = beside(Path(place), loc)
        if path is None:
            raise SourceError(
                "not found beside the index; give the index's own URL to have it fetched"
            )
        return open_file(path)


def _read_head(body: SourceBody, least: int = CHUNK) -> bytes:
    """Return at least `least` bytes, or all: CHUNK is enough to detect the format."""
    head = b""
    for chunk in body:
        head += chunk
        if len(head) >= least:
            break
    return head
