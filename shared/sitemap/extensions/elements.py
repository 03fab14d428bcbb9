"""Elements of an extension, declared once for checks, publishing, reading back and JSON Schema.

In JSON an element is a string if it is a leaf, an object if it has children or attributes, an
array of these if it may be repeated. An element with text and attributes may also be given as the
bare text, and is kept so if it has no attribute.

Each extension has a `take` (any JSON value to a canonical one, or faults), a `render` (canonical
value to XML) and a `read` (that XML back to the value). Canonical values are JSON-shaped, and each
leaf is the exact text of the XML: `600` seconds are `"600"`, True is `"yes"`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from shared.sitemap.extensions.report import ValueRefusedError, ValueReport
from shared.sitemap.extensions.value_types import Schema, ValueType
from shared.sitemap.xml_text import escape

Value = Any
"""A canonical value: text, list of values, or dict of values by member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One element, or one attribute, or the text of an element that has attributes.

    `tag` is its local name in XML, `name` its member in JSON (the tag by default). A leaf has a
    `kind`; any other has `text`, `attributes` and `children`, the latter in the order of the XSD.
    `most` is 0 for an element that occurs once, else the maximum number. `rule` is cited in
    faults, `missing` (`rule` by default) in those of a missing required element.
    `deprecated` elements are published only if the site's settings say so, `never` ones nowhere.
    `check` returns the fault of the members together, empty if there is none.
    """

    tag: str
    rule: str
    name: str = ""
    kind: ValueType | None = None
    text: Element | None = None
    attributes: tuple[Element, ...] = ()
    children: tuple[Element, ...] = ()
    most: int = 0
    required: bool = False
    missing: str = ""
    deprecated: bool = False
    never: bool = False
    check: Callable[[Mapping[str, Value]], str] | None = None
    parts: Mapping[str, Element] = field(init=False, repr=False)
    by_tag: Mapping[str, Element] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.tag)
        text = (self.text,) if self.text else ()
        parts = (*text, *self.attributes, *self.children)
        object.__setattr__(self, "parts", {part.name: part for part in parts})
        object.__setattr__(self, "by_tag", {part.tag: part for part in parts})


def take(
    element: Element, value: object, report: ValueReport, where: str, *, deprecated: bool
) -> Value | None:
    """The canonical form of a JSON value, None if there is none.

    Faults go to `report`, under the path `where`; after a fault the returned value may lack
    members, and serves for further checks only. With `deprecated`, deprecated elements are kept.
    """
    if not element.most:
        return _one(element, value, report, where, deprecated=deprecated)
    if not isinstance(value, (list, tuple)):
        report.fault(where, "type", "must be an array")
        return None
    if len(value) > element.most:
        report.fault(where, element.rule, f"{len(value)} given, at most {element.most} are allowed")
        return None
    taken = [
        _one(element, each, report, f"{where}[{number}]", deprecated=deprecated)
        for number, each in enumerate(value)
    ]
    return [each for each in taken if each is not None] or None


def _one(
    element: Element, value: object, report: ValueReport, where: str, *, deprecated: bool
) -> Value | None:
    if element.kind is not None:
        return _leaf(element, element.kind, value, report, where)
    if element.text is not None and isinstance(value, (str, int, float)):
        value = {element.text.name: value}
    if not isinstance(value, dict):
        report.fault(where, "type", f"must be an object with {', '.join(element.parts)}")
        return None
    for name in value.keys() - element.parts.keys():
        known = ", ".join(element.parts)
        report.fault(f"{where}.{name[:64]}", "unknown-field", f"not known here; known: {known}")
    found = _parts(element, value, report, where, deprecated=deprecated)
    if element.check is not None and (wrong := element.check(found)):
        report.fault(where, element.rule, wrong)
    kept = {
        name: part for name, part in found.items()
        if deprecated or not element.parts[name].deprecated
    }  # fmt: skip
    return _bare(element, kept)


def _parts(
    element: Element,
    value: Mapping[str, object],
    report: ValueReport,
    where: str,
    *,
    deprecated: bool,
) -> dict[str, Value]:
    found = {}
    for name, part in element.parts.items():
        given, path = value.get(name), f"{where}.{name}"
        if given is None:
            if part.required:
                report.fault(path, part.missing or part.rule, "is required: send it")
            continue
        if part.never:
            report.warn(path, part.rule, f"{name} is not in the schema: it is never published")
        if part.deprecated:
            done = "published, as emit_deprecated is set" if deprecated else "left out"
            report.warn(path, part.rule, f"{name} is deprecated and has no effect: {done}")
        taken = take(part, given, report, path, deprecated=deprecated)
        if taken is not None and not part.never:
            found[name] = taken
    return found


def _leaf(
    element: Element, kind: ValueType, value: object, report: ValueReport, where: str
) -> str | None:
    try:
        return kind.take(value, lambda said: report.warn(where, "PROTOCOL F4", said))
    except ValueRefusedError as error:
        report.fault(where, error.rule or element.rule, error.detail)
        return None


def _bare(element: Element, found: dict[str, Value]) -> Value:
    """The bare text if there is no other part."""
    if element.text is not None and found.keys() == {element.text.name}:
        return found[element.text.name]
    return found


def render(prefix: str, element: Element, value: Value) -> str:
    """The XML of a canonical value, on one line."""
    if isinstance(value, (list, tuple)):
        return "".join([render(prefix, element, each) for each in value])
    tag = f"{prefix}:{element.tag}"
    if isinstance(value, str):
        return f"<{tag}>{escape(value)}</{tag}>"
    attributes = [
        f' {part.tag}="{escape(value[part.name])}"'
        for part in element.attributes
        if part.name in value
    ]
    content = [
        render(prefix, part, value[part.name]) for part in element.children if part.name in value
    ]
    if element.text is not None:
        content.append(escape(value.get(element.text.name, "")))
    return f"<{tag}{''.join(attributes)}>{''.join(content)}</{tag}>"


_ATTRIBUTE = re.compile(r' ([a-z_]+)="([^"]*)"')
_Token = tuple[str, str, str, str]
"""A slash for an end tag, the local name, the attributes, the text after the tag."""


def read(prefix: str, element: Element, xml: str) -> list[Value]:
    """The canonical values of each `element` in XML that `render` wrote; no parser of other XML."""
    token = rf'<(/?){prefix}:([a-z_]+)((?: [a-z_]+="[^"]*")*)>([^<]*)'
    tokens: Iterator[_Token] = iter(re.findall(token, xml))
    return [_read(element, opening, tokens) for opening in tokens]


def _read(element: Element, opening: _Token, tokens: Iterator[_Token]) -> Value:
    _, _, attributes, text = opening
    found: dict[str, Value] = {}
    if text and element.text is not None:
        found[element.text.name] = unescape(text)
    for tag, value in _ATTRIBUTE.findall(attributes):
        found[element.by_tag[tag].name] = unescape(value)
    for token in tokens:
        if token[0]:
            break
        part = element.by_tag[token[1]]
        value = _read(part, token, tokens)
        if part.most:
            found.setdefault(part.name, []).append(value)
        else:
            found[part.name] = value
    return unescape(text) if element.kind is not None else _bare(element, found)


def schema(element: Element) -> Schema:
    """JSON Schema of the values that `take` accepts for `element`."""
    found = element.kind.schema if element.kind is not None else _object(element)
    if element.most:
        found = {"type": "array", "items": found, "maxItems": element.most}
    return found


def _object(element: Element) -> Schema:
    found: Schema = {
        "type": "object",
        "additionalProperties": False,
        "required": [name for name, part in element.parts.items() if part.required],
        "properties": {
            name: schema(part) if part.required else _optional(part)
            for name, part in element.parts.items()
        },
    }
    bare = element.text and not any(part.required for part in element.attributes)
    if element.text is not None and bare:
        return {"anyOf": [found, schema(element.text)]}
    return found


def _optional(part: Element) -> Schema:
    """JSON Schema of an optional part; null is the same as a missing one."""
    old = {"deprecated": True} if part.deprecated or part.never else {}
    return {"anyOf": [schema(part), {"type": "null"}], "description": part.rule, **old}
