"""Detection of a document's format, by its content, never by its name or content type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from shared.errors import SourceError, UnusableSourceError

if TYPE_CHECKING:
    from worker.sources.records import SourceCounts

_ATTRIBUTES = rb"""(?:[^<>"']+|"[^"]*"|'[^']*')*+>"""
_NAME = rb"((?:[A-Za-z_][\w.-]*:)?)([A-Za-z_][\w.-]*)"
_PROLOG = re.compile(rb"\s+|<\?.*?\?>|<!--.*?-->", re.DOTALL)
_ROOT = re.compile(rb"<" + _NAME + rb"(?=[\s/>])" + _ATTRIBUTES)
_KNOWN = re.compile(
    rb"<((?:[A-Za-z_][\w.-]*:)?)(urlset|sitemapindex|rss|feed)(?=[\s/>])" + _ATTRIBUTES
)
_CHANNEL = re.compile(
    rb"(?:\s+|<\?.*?\?>|<!--.*?-->)*+(<channel(?=[\s/>])" + _ATTRIBUTES + rb")", re.DOTALL
)
_HTML = re.compile(rb"<!doctype\s+html|<html[\s>]", re.IGNORECASE)
_DOCTYPE = re.compile(rb"<!DOCTYPE", re.IGNORECASE)
_ADDRESS = re.compile(rb"(?:^|\r)\s*https?://", re.IGNORECASE | re.MULTILINE)

ITEMS = {"urlset": b"url", "sitemapindex": b"sitemap", "rss": b"item", "feed": b"entry"}


@dataclass(slots=True)
class DocumentRoot:
    """The start of a document: its `kind`, the tags open around its items, and the items' `name`.

    `start` is the offset in the head at which the first item may begin, `line` and `column` its
    place in the document; `opening` + items + `closing` is a complete document. `skipped` are the
    bytes between prolog and root that are not markup of the document.
    """

    kind: str
    name: bytes
    end: bytes
    opening: bytes
    closing: bytes
    start: int
    line: int
    column: int
    childless: bool
    skipped: bytes = b""

    def may_declare(self, prefix: str) -> bool:
        """Return True if `declare` would help: the prefix is unbound here, and few were
        declared.
        """
        bound = b"xmlns:%b=" % prefix.encode() in self.opening
        return not bound and self.opening.count(b"urn:undeclared:") < 20

    def declare(self, prefix: str) -> None:
        """Bind a namespace prefix that the document uses without declaring it."""
        tag, kept = re.match(rb"<[^\s/>]+", self.opening), prefix.encode()
        assert tag is not None
        bound = b' xmlns:%b="urn:undeclared:%b"' % (kept, kept)
        self.opening = self.opening[: tag.end()] + bound + self.opening[tag.end() :]


def is_text_list(head: bytes) -> bool:
    """Return True for a plain list of addresses (PROTOCOL F10): no markup, a URL on some line."""
    return (
        not head.lstrip().startswith(b"<")
        and not _KNOWN.search(head)
        and bool(_ADDRESS.search(head))
    )


def find_root(head: bytes, tally: SourceCounts) -> DocumentRoot:
    """Return the root of a sitemap or feed; raises UnusableSourceError or SourceError without one.

    Text before the markup (a browser's notice, a PHP warning) is skipped and noted: every entry
    after it is complete. A DOCTYPE is refused (PROTOCOL F3).
    """
    at = _after_prolog(head)
    if head[:1].isspace() and head.lstrip().startswith(b"<?xml"):
        tally.add("F3", "white space before the XML declaration")
    found = _ROOT.match(head, at)
    if found is None or found[2].decode() not in ITEMS:
        known = _KNOWN.search(head, at)
        _refuse_other(head, at, known.start() if known else len(head))
        if known is None:
            _refuse_root(found[0] if found else b"")
        tally.add("F3", f"{known.start() - at} bytes before <{known[2].decode()}> were skipped")
        found = known
    root = _root(head, found)
    root.skipped = head[at : found.start()]
    return root


def _after_prolog(head: bytes) -> int:
    at = 0
    while part := _PROLOG.match(head, at):
        at = part.end()
    return at


def _refuse_other(head: bytes, start: int, end: int) -> None:
    if _HTML.search(head, start, end):
        raise UnusableSourceError("F1", "this is an HTML page")
    if _DOCTYPE.search(head, start, end):
        raise UnusableSourceError("F3", "a DOCTYPE is not allowed in a sitemap; nothing was read")
    if re.search(rb"<(rdf:)?RDF[\s>]", head[start:end]):
        raise UnusableSourceError("F11", "an RSS 1.0 feed; only RSS 2.0 and Atom 1.0 are read")


def _refuse_root(tag: bytes) -> NoReturn:
    if not tag:
        raise SourceError("this is no sitemap, no feed and no list of addresses")
    shown = tag[:60].decode(errors="replace")
    raise UnusableSourceError("F1", f"the root {shown} is no urlset, sitemapindex, rss or feed")


def _root(head: bytes, tag: re.Match[bytes]) -> DocumentRoot:
    prefix, kind = tag[1], tag[2].decode()
    opened, end, start = tag[0], prefix + tag[2], tag.end()
    closing = b"</%b>" % end
    if kind == "rss" and not opened.endswith(b"/>"):
        channel = _CHANNEL.match(head, start)
        if channel is None:
            raise UnusableSourceError("F11", "this RSS feed has no channel")
        opened, end, start = opened + channel[1], b"channel", channel.end()
        closing = b"</channel>" + closing
    before = head[:start]
    return DocumentRoot(
        kind=kind,
        name=ITEMS[kind],
        end=end,
        opening=re.sub(rb"[\r\n]", b" ", opened),  # one line, so that fault lines can be computed
        closing=closing,
        start=start,
        line=1 + before.count(b"\n"),
        column=start - (before.rfind(b"\n") + 1),
        childless=opened.endswith(b"/>"),
    )
