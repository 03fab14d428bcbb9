"""Extensions of a sitemap entry, as the JSON of event fields (PROTOCOL C0).

The tables that check and publish extensions also define their parsing. Values come as stated;
parsing the event checks them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from shared.sitemap.extensions import alternates, images, news, videos

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.sitemap.extensions.elements import Element
    from worker.sources.records import SourceCounts

Node = Any  # lxml ships no types

XML_SPACE: Final = " \t\r\n"
PREFIXES: Final = {
    **{module.NAMESPACE: module.PREFIX for module in (images, videos, news, alternates)},
    "http://www.google.com/schemas/sitemap-mobile/1.0": "mobile",
    "http://www.google.com/schemas/sitemap-pagemap/1.0": "pagemap",
}
_TABLES: Final = {
    (module.NAMESPACE, table.tag): table
    for module, table in ((images, images.IMAGE), (videos, videos.VIDEO), (news, news.NEWS))
}
_LINK: Final = (alternates.NAMESPACE, "link")


@dataclass(slots=True)
class Extensions:
    """Extensions of one page, collected child by child; `where` is its place in the source."""

    where: str
    tally: SourceCounts
    members: dict[str, Any] = field(default_factory=dict)

    def add(self, node: Node, namespace: str, name: str) -> bool:
        """Add the child `name` of `namespace`; False if it is not a known extension."""
        if (namespace, name) == _LINK and node.get("rel") == "alternate":
            link = {key: node.get(key, "").strip(XML_SPACE) for key in ("hreflang", "href")}
            self.members.setdefault(alternates.FIELD, []).append(link)
            return True
        table = _TABLES.get((namespace, name))
        if table is None:
            return False
        value = self._value(table, node, namespace)
        if table.most:
            self.members.setdefault(table.name, []).append(value)
        elif table.name in self.members:
            self.tally.add("W3", "more than one news:news: the first was taken", self.where)
        else:
            self.members[table.name] = value
        return True

    def _value(self, element: Element, node: Node, namespace: str) -> Any:
        if element.kind is not None:
            return _text(node)
        found: dict[str, Any] = {}
        if element.text is not None and (text := _text(node)):
            found[element.text.name] = text
        for part in element.attributes:
            if (given := node.get(part.tag, "").strip(XML_SPACE)) != "":
                self._remark(part, namespace)
                found[part.name] = given
        for child in node:
            self._child(element, child, namespace, found)
        return found

    def _child(self, element: Element, child: Node, namespace: str, found: dict[str, Any]) -> None:
        owner, _, name = child.tag.rpartition("}")
        part = element.by_tag.get(name)
        if part is None or part not in element.children or owner.removeprefix("{") != namespace:
            self.tally.drop(label(owner, name))
            return
        self._remark(part, namespace)
        value = self._value(part, child, namespace)
        if not value:
            return  # empty: not stated
        if part.most:
            found.setdefault(part.name, []).append(value)
        elif found.setdefault(part.name, value) != value:
            said = f"several {label(owner, name)} in one {element.tag}: the first was taken"
            self.tally.add("F13", said, self.where)

    def _remark(self, part: Element, namespace: str) -> None:
        _remark(part, f"{PREFIXES[namespace]}:{part.tag}", self.where, self.tally)


def remark(members: Mapping[str, Any], where: str, tally: SourceCounts) -> None:
    """Note deprecated fields in the extensions of one page, given as event fields."""
    for table in _TABLES.values():
        _remarks(table, members.get(table.name), table.name, where, tally)


def _remarks(element: Element, value: Any, name: str, where: str, tally: SourceCounts) -> None:
    for each in value if isinstance(value, list) else [value]:
        for member in element.parts.keys() & (each.keys() if isinstance(each, dict) else ()):
            part = element.parts[member]
            _remark(part, f"{name}.{member}", where, tally)
            _remarks(part, each[member], f"{name}.{member}", where, tally)


def _remark(part: Element, name: str, where: str, tally: SourceCounts) -> None:
    """Note a deprecated field, once per file."""
    if part.deprecated or part.never:
        said = f"{name} has no effect any more"
        tally.add(part.rule.removeprefix("PROTOCOL "), said, where)


def label(owner: str, name: str) -> str:
    """Return the display name of an element; `owner` is its namespace, maybe with lxml's brace."""
    space = owner.removeprefix("{")
    prefix = PREFIXES.get(space, space[:80])
    return f"{prefix}:{name[:40]}" if prefix else name[:40]


def _text(node: Node) -> str:
    return (node.text or "").strip(XML_SPACE)
