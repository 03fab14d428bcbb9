"""Stray content between the entries of a sitemap or feed, where only entries may be.

Another spelling of an entry (`<Url>`), a part of one (`<loc>`), an entry of the other kind of
document, text: each may have been meant as a page, so each is refused by itself, and the source
counts as incomplete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lxml import etree

from worker.sources.records import RecordRefusal, SourceCounts
from worker.sources.xml.extension_values import XML_SPACE, label

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Element = Any  # lxml ships no types

_LIKE_ENTRIES: Final = frozenset({"url", "loc", "sitemap", "item", "entry"})
_FEEDS: Final = frozenset({"rss", "feed"})
_SHOWN = 80


class StrayContent:
    """Separates the entries of one document, elements `item`, from other content beside them."""

    def __init__(self, name: str, kind: str, item: str, tally: SourceCounts) -> None:
        self._name, self._kind, self._item, self._tally = name, kind, item, tally
        self._namespace: str | None = None
        self._prefixes: Collection[str | None] = ()
        self._tag = item

    def bind(self, namespace: str | None, prefixes: Collection[str | None]) -> None:
        """Set the namespace of entries, or their possible prefixes."""
        self._namespace, self._prefixes = namespace, prefixes
        self._tag = f"{{{namespace}}}{self._item}" if namespace else self._item

    def entries(self, container: Element) -> list[Element]:
        """Return the entries in `container`."""
        return [child for child in container if self._is_entry(child)]

    def refused(self, container: Element, line: int, skip: int = 0) -> Iterator[RecordRefusal]:
        """Yield a refusal for other content of `container`, after its first `skip` children.

        `container` begins at `line`.
        """
        yield from self._text(container.text)
        for number, child in enumerate(container):
            if number >= skip and not self._is_entry(child):
                yield from self._element(child, line)
            yield from self._text(child.tail)

    def _is_entry(self, child: Element) -> bool:
        if child.tag == self._tag:
            return True
        return etree.QName(child).localname == self._item and child.prefix in self._prefixes

    def _element(self, child: Element, line: int) -> Iterator[RecordRefusal]:
        owner, _, name = child.tag.rpartition("}")
        foreign = owner.removeprefix("{") != (self._namespace or "")
        if name.lower() not in _LIKE_ENTRIES and (foreign or self._kind in _FEEDS):
            if self._kind not in _FEEDS:  # the head of a feed has many, none of which lists pages
                self._tally.drop(label(owner, name))
            return
        shown = label(owner, name) if foreign else name[:40]
        place = f"line {line + max(child.sourceline or 1, 1) - 1}"
        detail = f"<{shown}> outside of <{self._item}> was not read ({place})"
        yield RecordRefusal(self._name, "F13", detail, _address(child))

    def _text(self, text: str | None) -> Iterator[RecordRefusal]:
        said = (text or "").strip(XML_SPACE)
        if said:
            shown = said if len(said) <= _SHOWN else said[:_SHOWN] + ".."
            yield RecordRefusal(self._name, "F13", f"text outside of <{self._item}>: {shown!a}")


def _address(child: Element) -> str | None:
    """Return the page that the element may have meant, None without an address."""
    for node in child.iter():
        if etree.QName(node).localname.lower() in {"loc", "link"}:
            text = (node.text or "").strip(XML_SPACE)
            return text or None
    return None
