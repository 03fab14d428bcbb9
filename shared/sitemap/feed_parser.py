"""Parser for feeds from outside: Atom 1.0 (RFC 4287, RFC 6721) and RSS 2.0. Pure.

Hostile input is expected: a document type declaration is refused where it begins, so that there
are no entities; nothing is fetched; the depth, the entries and the length of each text are bounded.
The beginning of a feed can be parsed too, for the links in its head.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from xml.parsers import expat  # nosec B407  # no entity can be declared

from shared.errors import DateError, UnusableSourceError
from shared.sitemap import w3c_dates
from shared.sitemap.feed_entry import SPACE, FeedEntry

ATOM = "http://www.w3.org/2005/Atom"
_TOMBSTONE = "http://purl.org/atompub/tombstones/1.0 deleted-entry"
MOST = 5_000
"""Maximum number of entries of one feed."""
_DEEPEST = 100
_LONGEST = 8_192
"""Characters kept of one text: an address has 2,047, a title of ours 500."""

_ITEMS = ([f"{ATOM} feed", f"{ATOM} entry"], ["rss", "channel", "item"])
_HEADS = (_ITEMS[0][:1], _ITEMS[1][:2])


class ParsedItem(NamedTuple):
    """One entry: its address and its permanent id as stated; either may be empty.

    `updated` and `published` are W3C dates or empty; RSS has only `published`. `gone` is True if
    the feed states that the entry was deleted.
    """

    link: str
    ident: str = ""
    updated: str = ""
    published: str = ""
    title: str = ""
    gone: bool = False


class ParsedFeed(NamedTuple):
    """The entries, and the links in the head by their relation (`hub`, `self`)."""

    items: list[ParsedItem]
    links: Mapping[str, list[str]]


def read(content: bytes) -> ParsedFeed:
    """Parse a feed. Raises UnusableSourceError if `content` is no feed, or no XML."""
    reader = _Reader()
    reader.parse(content, whole=True)
    return ParsedFeed(reader.items, reader.links)


def head(beginning: bytes) -> Mapping[str, list[str]]:
    """The links of the feed that starts with `beginning`; none if it cannot be read."""
    reader = _Reader()
    with suppress(UnusableSourceError):  # what was read before the fault stays
        reader.parse(beginning, whole=False)
    return reader.links


class _Reader:
    """Handler of the parser's events; `_path` holds the names of the open elements."""

    def __init__(self) -> None:
        self.items: list[ParsedItem] = []
        self.links: dict[str, list[str]] = {}
        self._path: list[str] = []
        self._item: FeedEntry | None = None
        self._part: tuple[str, dict[str, str]] | None = None
        self._text: list[str] = []
        self._length = 0

    def parse(self, content: bytes, *, whole: bool) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        try:
            parser.Parse(content, whole)
        except (expat.ExpatError, ValueError, LookupError) as error:
            # Besides invalid XML: encodings that Python does not know, or that are no text.
            raise UnusableSourceError("F4", f"no XML that can be read: {error}") from None

    def _doctype(self, *_: object) -> None:
        raise UnusableSourceError("F4", "a document type declaration, which is not read")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._path and name not in {f"{ATOM} feed", "rss"}:
            raise UnusableSourceError("F11", "neither Atom 1.0 nor RSS 2.0")
        if len(self._path) == _DEEPEST:
            raise UnusableSourceError("F4", f"elements nested more than {_DEEPEST} deep")
        if self._path in _ITEMS and self._item is not None:
            space, _, local = name.rpartition(" ")
            ours = space == (ATOM if self._path == _ITEMS[0] else "") and local in self._item.names
            self._part = (local, attributes) if ours else None
            self._text, self._length = [], 0
        elif self._path in _HEADS:
            self._head(name, attributes)
        self._path.append(name)
        if self._path in _ITEMS:
            if len(self.items) >= MOST:
                raise UnusableSourceError("F11", f"more than {MOST} entries")
            self._item = FeedEntry(atom=self._path == _ITEMS[0])

    def _head(self, name: str, attributes: dict[str, str]) -> None:
        if name == f"{ATOM} link" and "href" in attributes:
            relation = attributes.get("rel", "alternate").lower()
            self.links.setdefault(relation, []).append(attributes["href"].strip(SPACE))
        elif name == _TOMBSTONE and self._path == _HEADS[0]:
            when, ident = _date(attributes.get("when", "")), attributes.get("ref", "")
            self.items.append(ParsedItem("", ident.strip(SPACE), when, gone=True))

    def _data(self, text: str) -> None:
        if self._part is not None and self._path[:-1] in _ITEMS:
            text = text[: _LONGEST - self._length]
            self._text.append(text)
            self._length += len(text)

    def _end(self, _name: str) -> None:
        self._path.pop()
        if self._item is None:
            return
        if self._path in _ITEMS and self._part is not None:
            self._item.add(*self._part, "".join(self._text))
            self._part = None
        elif self._path in _HEADS:
            self.items.append(_item(self._item))
            self._item = None


def _item(entry: FeedEntry) -> ParsedItem:
    published = _date(entry.said("published"))
    published = published or w3c_dates.from_rfc822(entry.said("pubDate")) or ""
    updated = _date(entry.said("updated"))
    return ParsedItem(entry.link or "", entry.ident, updated, published, entry.said("title"))


def _date(text: str) -> str:
    try:
        return w3c_dates.canonical(text)
    except DateError:
        return ""
