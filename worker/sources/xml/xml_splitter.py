"""Splitting of a stream of markup before each entry, so that a fault affects only its own entry.

Every piece is parsed as a document of its own, in batches for speed. The whole is then well-formed:
content that is balanced piece by piece is balanced together. Declarations inside a document
(DOCTYPE, entities) have no effect, because no piece contains a prolog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PIECE_LIMIT = 2 * 1024 * 1024  # bytes; the largest real entry seen is 0.3 MB: 1,000 images
TAG_LIMIT = 4096
"""Maximum bytes of a start tag that are searched for the namespace it declares."""

_CLOSED_BY = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_SPACE = rb"[ \t\r\n]{0,99}+"
_PLAIN = _SPACE.join(
    (
        rb"<url>",
        rb"<loc>([!#-%'-;=?-~]{1,4096}+)</loc>",
        rb"(?:<lastmod>([0-9TZ:.+-]{1,99})</lastmod>)?",
        rb"(?:<changefreq>([a-z]{1,99})</changefreq>)?",
        rb"(?:<priority>([0-9.]{1,99})</priority>)?",
        rb"</url>",
        rb"",
    )
)
PLAIN_ENTRY = re.compile(_PLAIN.decode())
"""An entry of a sitemap without extensions, references and comments: loc, lastmod, changefreq,
priority. Such entries need no parser.
"""

_PLAIN_RUN = re.compile(rb"(?:%b(?=<url>))++" % _PLAIN)
_ATTRIBUTES = re.compile(rb"""(?:[^<>"']+|"[^"<]*"|'[^'<]*')*+>""")
_STRAY = re.compile(
    rb"(<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z))"
    rb"|&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class XmlPiece:
    """A run of bytes that begins at an `entry`, some PLAIN_ENTRY (`kind` is `plain`), or the `head`
    or `tail` around them.

    It begins at `line` (from 1) and `column` (from 0, in bytes). `cut` is set if the document ends
    inside or right after it. `data` is None if it exceeds PIECE_LIMIT: then the place is that of
    its end.
    """

    kind: str
    line: int
    column: int
    data: bytes | None
    cut: bool = False


def escape_ampersands(data: bytes) -> tuple[bytes, int]:
    """Escape each `&` that begins no reference (PROTOCOL F4), outside CDATA and comments."""
    count = 0

    def escaped(found: re.Match[bytes]) -> bytes:
        nonlocal count
        if found[1]:
            return found[1]
        count += 1
        return b"&amp;"

    return _STRAY.sub(escaped, data), count


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a document: elements `name` of `namespace`, with any prefix.

    `prefixes` are those bound to the namespace around the items, b"" for none. An item may also
    bind its own.
    """

    name: bytes
    prefixes: frozenset[bytes]
    namespace: bytes = b""

    def declared_by(self, prefix: bytes, tag: bytes) -> bool:
        """Return True if the start `tag` itself binds `prefix` to the namespace."""
        named = rb"xmlns:%b" % re.escape(prefix) if prefix else rb"xmlns"
        bound = rb"""\s%b\s*=\s*["']%b["']""" % (named, re.escape(self.namespace))
        return bool(self.namespace) and re.search(bound, tag) is not None


class XmlSplitter:
    """Splits chunks before each start tag of an item and before `</end`, in memory bounded by
    PIECE_LIMIT.
    """

    def __init__(self, items: Items, end: bytes, line: int, column: int) -> None:
        self._items = items
        self._plain = items.name == b"url" and b"" in items.prefixes
        self._token = re.compile(
            rb"<!--|<!\[CDATA\[|<\?|<(?:([A-Za-z_][\w.-]{0,63}):)?(%b)(?=[\s/>])|</%b(?=[\s>])"
            % (re.escape(items.name), re.escape(end))
        )
        # A token may begin in one chunk and end in the next.
        self._keep = max(len(items.name) + 65, len(end), 8) + 3
        self._end = b"</" + end
        self._line, self._column = line, column
        self._buffer = bytearray()
        self._scan = 0
        self._kind = "head"
        self._too_large = False
        self._closer: bytes | None = None

    def pieces(self, chunks: Iterable[bytes]) -> Iterator[XmlPiece]:
        for chunk in chunks:
            self._buffer += chunk
            yield from self._complete()
            self._bound()
        yield self._take(len(self._buffer), "", cut=self._kind != "tail")

    def _complete(self) -> Iterator[XmlPiece]:
        while self._kind != "tail":
            if run := self._run():
                self._kind = "plain"
                yield self._take(run.end(), "entry")
                self._scan = len(b"<url>")
            if self._closer is not None:
                at = self._buffer.find(self._closer, self._scan)
                if at < 0:
                    self._scan = max(self._scan, len(self._buffer) - len(self._closer) + 1)
                    return
                self._scan, self._closer = at + len(self._closer), None
            found = self._token.search(self._buffer, self._scan)
            if found is None:
                self._scan = max(self._scan, len(self._buffer) - self._keep)
                return
            begins = self._begins(found)
            if begins is None:
                self._scan = found.start()
                return
            token, self._scan = bytes(found[0]), found.end()
            self._closer = _CLOSED_BY.get(token)
            if begins:
                yield self._take(found.start(), "entry")
            elif token == self._end:
                yield self._take(found.start(), "tail")

    def _run(self) -> re.Match[bytes] | None:
        """Return the plain entries at the start of the buffer that another entry follows."""
        if self._plain and self._kind == "entry" and not self._too_large:
            return _PLAIN_RUN.match(self._buffer, 0, PIECE_LIMIT)
        return None

    def _begins(self, found: re.Match[bytes]) -> bool | None:
        """Return True if the token begins an item; None if more bytes are needed to decide."""
        if found[2] is None:
            return False
        prefix = bytes(found[1] or b"")
        if prefix in self._items.prefixes:
            return True
        start, limit = found.end(), found.end() + TAG_LIMIT
        tag = _ATTRIBUTES.match(self._buffer, start, limit)
        if tag is None:
            open_yet = len(self._buffer) < limit and self._buffer.find(b"<", start) < 0
            return None if open_yet else False
        return self._items.declared_by(prefix, bytes(tag[0]))

    def _take(self, stop: int, following: str, *, cut: bool = False) -> XmlPiece:
        too_large = self._too_large or stop > PIECE_LIMIT
        data = None if too_large else bytes(self._buffer[:stop])
        piece = XmlPiece(self._kind, self._line, self._column, data, cut)
        self._advance(stop)
        self._kind, self._too_large = following, False
        return piece

    def _advance(self, stop: int) -> None:
        newlines = self._buffer.count(b"\n", 0, stop)
        last = self._buffer.rfind(b"\n", 0, stop)
        self._line += newlines
        self._column = self._column + stop if last < 0 else stop - last - 1
        del self._buffer[:stop]
        self._scan = max(0, self._scan - stop)

    def _bound(self) -> None:
        if self._too_large or len(self._buffer) > PIECE_LIMIT:
            self._too_large = True
            self._advance(max(0, len(self._buffer) - self._keep))
