"""Meaning of one entry of a feed, Atom 1.0 or RSS 2.0, whoever parsed its XML. Pure.

Two parsers use it. feed_parser.py reads what a hub delivers, strictly and as a whole, in a package
that knows the standard library only; worker/sources/xml reads what is imported, entry by entry with
lxml, so that a fault costs one entry and is reported with its line.
"""

from __future__ import annotations

from typing import Protocol

SPACE = " \t\r\n"

_ATOM = frozenset({"id", "title", "link", "updated", "published"})
_RSS = frozenset({"guid", "title", "link", "pubDate"})


class Attributes(Protocol):
    """Attributes of an element."""

    def get(self, name: str, default: str, /) -> str:
        """Return the value of `name`."""
        ...


class FeedEntry:
    """One entry, from its children in the order in which they stand; the first of a name counts."""

    def __init__(self, *, atom: bool) -> None:
        self._atom, self._said = atom, dict[str, str]()
        self.names = _ATOM if atom else _RSS
        self.several_links = False

    def add(self, name: str, attributes: Attributes, text: str) -> None:
        """Add the child `name`, one of `names`, of the feed's own namespace."""
        text = text.strip(SPACE)
        if name == "link" and self._atom:
            if attributes.get("rel", "alternate") != "alternate":
                return
            text = attributes.get("href", "").strip(SPACE)
            self.several_links |= self._said.get("link", text) != text
        elif name == "guid" and attributes.get("isPermaLink", "true").strip(SPACE) == "true":
            self._said.setdefault("permalink", text if "://" in text else "")
        elif name == "title" and attributes.get("type", "text") != "text":
            return  # markup is no title
        self._said.setdefault(name, text)

    @property
    def link(self) -> str | None:
        """The address of the page: an Atom link, or an RSS link, or a guid that is one."""
        if self._atom:
            return self._said.get("link")
        return self._said.get("link") or self._said.get("permalink") or None

    @property
    def ident(self) -> str:
        """The permanent id, or empty."""
        return self.said("id" if self._atom else "guid")

    def said(self, name: str) -> str:
        """Return the text of the child `name`, or empty."""
        return self._said.get(name, "")
