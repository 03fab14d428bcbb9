"""Entries of sitemaps and feeds: strict XML, with faulty entries repaired or refused one by one.

A repair is made only where its meaning is certain, and noted: a bare `&` is read as `&amp;`, a
missing end tag is supplied where the next entry begins, an undeclared prefix is bound. Any other
fault refuses its entry, with line and column, and no other entry. Content between entries that
could have been an entry is refused too (stray_content.py).

lxml's `recover=True` is not used, because it invents addresses, which an import would list: it
reads `?a=1&b=2` as `?a=1=2`, `/caf&eacute;/x` as `/caf`, and a document cut in `/long-name` as one
with `/long-na`. In the corpus of real sitemaps it alters 498 addresses of two files, and reads
nothing of two others: one with text before the markup, one that declares a wrong encoding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lxml import etree

from shared.errors import UnusableSourceError
from worker.sources.records import RecordRefusal, SourceCounts, SourceRecord
from worker.sources.xml.stray_content import StrayContent
from worker.sources.xml.xml_splitter import (
    PIECE_LIMIT,
    PLAIN_ENTRY,
    Items,
    XmlPiece,
    XmlSplitter,
    escape_ampersands,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from worker.sources.xml.format_detection import DocumentRoot

Element = Any  # lxml ships no types

_BATCH = 256 * 1024  # bytes parsed at once: 50,000 URLs in 0.1 s, some 3 MB of tree
_UNDECLARED = re.compile(r"Namespace prefix (\S+) (?:on|for) ")
_ENTRY = re.compile(rb"<(?:[\w.-]+:)?(?:url|loc|sitemap|item|entry)[\s>]")
_UNDEFINED = re.compile(r"&([A-Za-z][A-Za-z0-9]*);")


@dataclass(frozen=True, slots=True)
class XmlEntry:
    """One entry of a document; `repaired` if bare ampersands in it were escaped."""

    number: int
    element: Element
    repaired: bool = False

    def doubtful(self, loc: str) -> str | None:
        """Return the name of an undefined entity in the address: a character or literal text."""
        found = _UNDEFINED.search(loc) if self.repaired else None
        return found[1] if found else None


class XmlEntries:
    """Reader of the entries of one document with a known root; `count` of entries so far."""

    def __init__(self, name: str, root: DocumentRoot, tally: SourceCounts) -> None:
        self._name, self._root, self._tally = name, root, tally
        self.count = 0
        self._strays = StrayContent(name, root.kind, root.name.decode(), tally)
        self._parser = etree.XMLParser(
            encoding="utf-8",
            resolve_entities=False,
            load_dtd=False,
            no_network=True,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
            collect_ids=False,
        )

    def root_element(self) -> Element:
        """Return the bare root; UnusableSourceError if its start tag is not XML."""
        closing = b"" if self._root.childless else self._root.closing
        try:
            return self._parse(b"", closing)
        except etree.XMLSyntaxError as error:
            raise UnusableSourceError(
                "F4", f"the root's start tag is broken: {_reason(error)}"
            ) from error

    def entries(self, chunks: Iterable[bytes]) -> Iterator[XmlEntry | SourceRecord | RecordRefusal]:
        """Yield entries in document order, plain ones as their pages; `chunks` begin at the root's
        `start`.
        """
        root, batch, size = self._root, list[XmlPiece](), 0
        if _ENTRY.search(root.skipped):
            yield RecordRefusal(
                self._name, "F3", "entries stand before the markup: they were not read"
            )
        if root.childless:
            yield from self._behind(chunks)
            return
        for piece in XmlSplitter(self._items(), root.end, root.line, root.column).pieces(chunks):
            if piece.kind == "entry" and piece.data is not None and not piece.cut:
                batch.append(piece)
                size += len(piece.data)
                if size < _BATCH:
                    continue
            yield from self._batch(batch)
            if piece.kind == "plain":
                yield from self._plain(piece.data or b"")
            elif not batch or piece is not batch[-1]:
                yield from self._other(piece)
            batch, size = [], 0

    def _items(self) -> Items:
        """Return the items, with the namespaces bound around them."""
        element = self._container(self.root_element())
        namespace = etree.QName(element).namespace
        bound = [prefix for prefix, uri in element.nsmap.items() if uri == namespace]
        prefixes = bound if namespace else [None]
        self._strays.bind(namespace, prefixes)
        known = frozenset((prefix or "").encode() for prefix in prefixes)
        return Items(self._root.name, known, (namespace or "").encode())

    def _behind(self, chunks: Iterable[bytes]) -> Iterator[RecordRefusal]:
        """Check the content after an empty root: no markup is allowed."""
        data = b""
        for chunk in chunks:
            data = (data + chunk)[:PIECE_LIMIT]
        yield from self._edge(XmlPiece("tail", self._root.line, self._root.column, data), data)

    def _batch(self, batch: list[XmlPiece]) -> Iterator[XmlEntry | RecordRefusal]:
        if not batch:
            return
        try:
            container = self._content(b"".join(piece.data or b"" for piece in batch))
            found = self._strays.entries(container)
        except etree.XMLSyntaxError:
            found = []
        if len(found) == len(batch):
            for element in found:
                self.count += 1
                yield XmlEntry(self.count, element)
            yield from self._strays.refused(container, batch[0].line)
            return
        for piece in batch:
            yield from self._single(piece)

    def _plain(self, data: bytes) -> Iterator[SourceRecord]:
        for loc, lastmod, changefreq, priority in PLAIN_ENTRY.findall(data.decode()):
            self.count += 1
            where = f"{self._name}#{self.count}"
            yield SourceRecord(loc, where, lastmod or None, changefreq or None, priority or None)

    def _single(self, piece: XmlPiece) -> Iterator[XmlEntry | RecordRefusal]:
        """Yield the entry of one piece, repaired where needed and certain."""
        self.count += 1
        data = piece.data or b""
        try:
            yield from self._alone(self._content(data), piece)
        except etree.XMLSyntaxError as error:
            fault = error
        else:
            return
        mended, ampersands = escape_ampersands(data)
        ending = b"</%b>" % data[1:].split(None, 1)[0].split(b">", 1)[0].rstrip(b"/")
        attempts = [(mended, b"")] if ampersands else []
        attempts += [] if piece.cut else [(mended, ending)]
        for content, added in attempts:
            try:
                container = self._content(content + added)
            except etree.XMLSyntaxError:
                continue
            found = self._strays.entries(container)
            if len(found) != 1 or (added and not len(found[0])):
                break
            self._note_repairs(ampersands, added)
            yield from self._alone(container, piece, repaired=ampersands > 0)
            return
        yield self._refusal(piece, fault, f"{self._name}#{self.count}")

    def _alone(
        self, container: Element, piece: XmlPiece, *, repaired: bool = False
    ) -> Iterator[XmlEntry | RecordRefusal]:
        """Yield the one entry of a piece; XMLSyntaxError for any other number of entries."""
        found = self._strays.entries(container)
        if len(found) != 1:
            raise etree.XMLSyntaxError("not one entry", 0, 0, 0)
        yield XmlEntry(self.count, found[0], repaired=repaired)
        yield from self._strays.refused(container, piece.line)

    def _note_repairs(self, ampersands: int, added: bytes) -> None:
        where = f"{self._name}#{self.count}"
        if ampersands:
            self._tally.add("F4", "unescaped & read as &amp;", where, ampersands)
        if added:
            self._tally.add("F4", f"missing {added.decode()} supplied", where)

    def _other(self, piece: XmlPiece) -> Iterator[XmlEntry | RecordRefusal]:
        """Yield the items of a piece at the edge: before the first entry, after the last, cut short
        or too large.
        """
        if piece.data is None:
            detail = (
                f"more than {PIECE_LIMIT} bytes without an entry's end before line {piece.line}"
            )
            self.count += piece.kind == "entry"
            yield RecordRefusal(f"{self._name}#{self.count}", "F4", detail)
        elif piece.kind == "entry":
            yield from (entry for entry in self._single(piece) if isinstance(entry, XmlEntry))
        else:
            yield from self._edge(piece, piece.data)
        if piece.cut:
            ending = self._root.closing.decode(errors="replace")
            detail = f"the document is cut short in or after this entry: {ending} is missing"
            yield RecordRefusal(f"{self._name}#{self.count}", "F4", detail)

    def _edge(self, piece: XmlPiece, data: bytes) -> Iterator[RecordRefusal]:
        try:
            found = self._parse(data, b"" if piece.kind == "tail" else self._root.closing)
        except etree.XMLSyntaxError as error:
            yield self._refusal(piece, error, self._name)
            return
        if piece.kind == "head":
            yield from self._strays.refused(self._container(found), piece.line)
        elif self._root.kind == "rss":
            yield from self._strays.refused(found, piece.line, skip=1)

    def _content(self, data: bytes) -> Element:
        """Return the element that holds the entries of `data`."""
        return self._container(self._parse(data, self._root.closing))

    def _container(self, root: Element) -> Element:
        return root[0] if self._root.kind == "rss" and len(root) else root

    def _parse(self, data: bytes, closing: bytes) -> Element:
        """Parse content between the open tags; bind undeclared prefixes as they occur."""
        while True:
            try:
                return etree.fromstring(self._root.opening + data + closing, self._parser)
            except etree.XMLSyntaxError as error:
                prefix = _UNDECLARED.search(error.msg or "")
                if prefix is None or not self._root.may_declare(prefix[1]):
                    raise
                self._tally.add("F6", f"the namespace prefix {prefix[1]} is never declared")
                self._root.declare(prefix[1])

    def _refusal(self, piece: XmlPiece, error: Any, where: str) -> RecordRefusal:
        """Return the parser's error at its place in the document, at most at the end of the
        piece.
        """
        data = self._root.opening + (piece.data or b"")
        line, column = error.position
        line = min(max(line, 1), 1 + data.count(b"\n"))
        if line == 1 + data.count(b"\n"):
            column = min(column, len(data) - data.rfind(b"\n"))
        if line == 1:
            column += piece.column - len(self._root.opening)
        place = f"line {piece.line + line - 1}, column {max(column, 1)}"
        return RecordRefusal(where, "F4", f"{_reason(error)} ({place})")


def _reason(error: Any) -> str:
    """Return the parser's message without its positions, which count from the piece."""
    return re.sub(r",? (?:in |at )?(?:line \d+|column \d+)", "", error.msg or "not well-formed")
