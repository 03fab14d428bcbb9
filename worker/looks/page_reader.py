"""Reader of a page: what header and HTML say of its listing (PROTOCOL L8).

Any bytes give an answer: a page that is no HTML says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin

from lxml import etree

from shared.errors import UrlError
from shared.sitemap import urls

AGENTS = ("googlebot", "bingbot")
"""Crawlers whose own directives count, besides those for all."""

_REFUSALS = frozenset({"noindex", "none"})
_DIRECTIVE = re.compile(r"\s*(?:([a-z0-9_-]+)\s*:)?\s*([^,]*)", re.IGNORECASE)
_VALUED = frozenset({
    "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview",
})  # fmt: skip
"""Directives with a colon of their own, which name no crawler."""
_LINK = re.compile(r'<([^<>]*)>((?:[^,"]|"[^"]*")*)')
_CANONICAL = re.compile(r';\s*rel\s*=\s*"?[^";]*\bcanonical\b', re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_HTML = frozenset({"text/html", "application/xhtml+xml"})


class PageWords(NamedTuple):
    """Words of a page about its listing: who says `noindex` (empty: nobody), another `canonical`
    URL (empty: none, or the page itself), and its `language`. `tree` is its HTML; None if it is
    none.
    """

    noindex: str = ""
    canonical: str = ""
    language: str = ""
    tree: Any = None


def type_of(headers: Mapping[str, str]) -> str:
    """Return the type in `Content-Type`, in lower case; empty without one."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return "".join(c for c in kind if c.isprintable())[:80]


def read(loc: str, headers: Mapping[str, str], body: bytes) -> PageWords:
    """Return what the page `loc` says."""
    tree = _tree(headers, body) if type_of(headers) in _HTML else None
    base = loc if tree is None else _base(tree, loc)
    noindex = "header" if refuses(headers.get("x-robots-tag", "")) else ""
    canonicals = [*_linked(headers.get("link", ""))]
    language = headers.get("content-language", "").strip()
    if tree is not None:
        noindex = noindex or _meta(tree)
        canonicals += _named(tree)
        language = (tree.get("lang") or "").strip() or language
    language = language if _LANGUAGE.fullmatch(language) else ""
    return PageWords(noindex, _other(loc, base, canonicals), language[:35], tree)


def refuses(header: str) -> bool:
    """Return True if `X-Robots-Tag` forbids all crawlers, or one of AGENTS, to index."""
    agent = ""
    for named, directive in _DIRECTIVE.findall(header.lower()):
        if named and named not in _VALUED:
            agent = named
        if (not agent or agent in AGENTS) and directive.strip() in _REFUSALS:
            return True
    return False


def _tree(headers: Mapping[str, str], body: bytes) -> Any:
    """Return the root of an HTML page; None if there is none in it."""
    charset = re.search(r"charset\s*=\s*\"?([\w-]+)", headers.get("content-type", ""), re.ASCII)
    for encoding in (charset[1] if charset else None, None):
        try:
            parser = etree.HTMLParser(encoding=encoding, no_network=True, remove_comments=True)
            return etree.fromstring(body, parser)
        except (etree.XMLSyntaxError, ValueError, AssertionError):
            return None
        except LookupError:  # an unknown charset
            continue
    return None


def _base(tree: Any, loc: str) -> str:
    for each in tree.iter("base"):
        if href := (each.get("href") or "").strip():
            return _joined(loc, href) or loc
    return loc


def _meta(tree: Any) -> str:
    for each in tree.iter("meta"):
        name = (each.get("name") or "").strip().lower()
        said = {word.strip() for word in (each.get("content") or "").lower().split(",")}
        if name in {"robots", *AGENTS} and said & _REFUSALS:
            return f"meta {name}"
    return ""


def _named(tree: Any) -> Iterator[str]:
    for each in tree.iter("link"):
        if "canonical" in (each.get("rel") or "").lower().split():
            yield (each.get("href") or "").strip()


def _linked(header: str) -> Iterator[str]:
    for address, parameters in _LINK.findall(header[:8_192]):
        if _CANONICAL.match(parameters):
            yield address.strip()


def _other(loc: str, base: str, canonicals: list[str]) -> str:
    """Return the canonical URL that is not `loc`; several that disagree count as none."""
    found = {_canonical(_joined(base, each)) for each in canonicals if each} - {""}
    return next(iter(found), "") if len(found) == 1 and loc not in found else ""


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:
        return ""


def _canonical(url: str) -> str:
    try:
        return urls.absolute(url)
    except UrlError:
        return ""
