"""Versions of a page in other languages: `<xhtml:link>` (PROTOCOL H1 to H6).

In JSON: `[{"hreflang": "en", "href": "https://..."}, ...]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape

from shared.errors import UrlError
from shared.sitemap import urls
from shared.sitemap.extensions.languages import HREFLANG_PATTERN, X_DEFAULT, hreflang
from shared.sitemap.extensions.report import ValueRefusedError, ValueReport
from shared.sitemap.xml_text import escape

PREFIX = "xhtml"
NAMESPACE = "http://www.w3.org/1999/xhtml"

Alternates = tuple[tuple[str, str], ...]
"""Pairs of code and URL, sorted by code, `x-default` last; no code twice."""

FIELD = "alternates"
MAX = 1_000
"""Alternates of one page; no site serves more languages and countries. Our own limit."""

_LINK = re.compile(r'<xhtml:link rel="alternate" hreflang="([^"]*)" href="([^"]*)"/>')
_MEMBERS = ("hreflang", "href")

SCHEMA = {
    "type": ["array", "null"],
    "maxItems": MAX,
    "description": "the page in its languages, itself included (PROTOCOL H2); excludes `group`",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": list(_MEMBERS),
        "properties": {
            "hreflang": {"type": "string", "pattern": HREFLANG_PATTERN},
            "href": {"type": "string", "format": "uri", "maxLength": urls.MAX_LENGTH},
        },
    },
}


def take(value: object, report: ValueReport, *, loc: str | None = None) -> Alternates:
    """The alternates of a JSON value; faults go to `report`.

    A set without the page at `loc` itself is accepted with a warning (PROTOCOL H2): Google
    ignores links without a return link, but tolerates it between other pairs (H3).
    """
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)):
        report.fault(FIELD, "type", "must be an array of {hreflang, href}")
        return ()
    if len(value) > MAX:
        report.fault(FIELD, "length", f"{len(value)} alternates, at most {MAX} are taken")
        return ()
    found: dict[str, str] = {}
    for position, item in enumerate(value):
        where = f"{FIELD}[{position}]"
        code, href = _pair(item, report, where)
        if code and code in found:
            report.fault(f"{where}.hreflang", "PROTOCOL H5", f"{code} is given twice: one URL each")
        elif code and href:
            found[code] = href
    if found and loc is not None and loc not in found.values():
        report.warn(FIELD, "PROTOCOL H2", "the page itself is missing: list its own URL too")
    return ordered(found.items())


def ordered(pairs: Iterable[tuple[str, str]]) -> Alternates:
    """Pairs of canonical code and URL in their canonical order."""
    return tuple(sorted(pairs, key=_rank))


def _rank(pair: tuple[str, str]) -> tuple[bool, str]:
    return pair[0] == X_DEFAULT, pair[0]


def _pair(item: object, report: ValueReport, where: str) -> tuple[str, str]:
    if not isinstance(item, dict):
        report.fault(where, "type", "must be an object {hreflang, href}")
        return "", ""
    for name in item.keys() - set(_MEMBERS):
        detail = f"not a member of an alternate; known: {', '.join(_MEMBERS)}"
        report.fault(f"{where}.{name[:64]}", "unknown-field", detail)
    values = []
    for name in _MEMBERS:
        text = item.get(name)
        if not isinstance(text, str):
            report.fault(f"{where}.{name}", "PROTOCOL H1", "is required, and a string")
            return "", ""
        values.append(text)
    code = href = ""
    try:
        code = hreflang(values[0])
    except ValueRefusedError as error:
        report.fault(f"{where}.hreflang", "PROTOCOL H4", error.detail)
    try:
        href = urls.absolute(values[1])
    except UrlError as error:
        report.fault(f"{where}.href", f"PROTOCOL {error.rule}", error.detail)
    return code, href


def render(alternates: Alternates) -> str:
    """The links, one directly after the other (PROTOCOL C0)."""
    return "".join(
        [
            f'<xhtml:link rel="alternate" hreflang="{code}" href="{escape(href)}"/>'
            for code, href in alternates
        ]
    )


def read(xml: str) -> Alternates:
    """The alternates in a fragment, as `render` wrote them."""
    return tuple((code, unescape(href)) for code, href in _LINK.findall(xml))
