"""The finished bytes of an entry and of the file around it.

A fragment starts with `<url><loc>` and ends with `</url>` and a newline, and neither mark can occur
inside one, because every value is entity-escaped (PROTOCOL F4). Blocks are cut and edited by
these two marks alone, so nothing else may ever write fragments.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from html import unescape

from shared.entries import Entry

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_STYLE = '<?xml-stylesheet type="text/css" href="{}"?>\n'

START = b"<url><loc>"
LOC_END = b"</loc>"
END = b"</url>\n"
URLSET_END = b"</urlset>\n"
INDEX_END = b"</sitemapindex>\n"

_TAG = re.compile(r"<(lastmod|changefreq|priority)>([^<]*)</")


def head(root: str, stylesheet: str) -> bytes:
    """What stands before the first child: declaration (PROTOCOL F3), style, root (F1, F2)."""
    return f'{_DECLARATION}{_STYLE.format(stylesheet)}<{root} xmlns="{NAMESPACE}">\n'.encode()


URLSET_START = head("urlset", "sitemap.css")
INDEX_START = head("sitemapindex", "sitemap.css")
OVERHEAD = len(URLSET_START) + len(URLSET_END)
"""Bytes of a shard file that are not fragments."""


def escape(text: str) -> str:
    """`text` with the five characters of PROTOCOL F4 as entities."""
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "'" in text:
        text = text.replace("'", "&apos;")
    if '"' in text or "<" in text or ">" in text:
        text = text.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return text


def key(loc: str) -> bytes:
    """How the fragment of `loc` begins, up to and with `</loc>`: unique to it within a site."""
    return b"<url><loc>%b</loc>" % escape(loc).encode()


def render(entry: Entry) -> bytes:
    """The fragment of `entry`, children in the order of the XSD (PROTOCOL F5)."""
    parts = ["<url><loc>", escape(entry.loc), "</loc>"]
    if entry.lastmod is not None:
        parts += "<lastmod>", entry.lastmod, "</lastmod>"
    if entry.changefreq is not None:
        parts += "<changefreq>", entry.changefreq, "</changefreq>"
    if entry.priority is not None:
        parts += "<priority>", entry.priority, "</priority>"
    parts.append("</url>\n")
    return "".join(parts).encode()


def digest(fragment: bytes) -> bytes:
    """Five bytes that tell fragments apart: one changed page in 10^12 would be taken for equal."""
    return blake2b(fragment, digest_size=5).digest()


def loc_of(fragment: bytes) -> str:
    """The loc of a fragment that `render` made."""
    return unescape(fragment[len(START) : fragment.index(LOC_END)].decode())


def parse(fragment: bytes) -> Entry:
    """The entry of a fragment that `render` made."""
    rest = fragment[fragment.index(LOC_END) :].decode()
    return Entry(loc_of(fragment), **dict(_TAG.findall(rest)))


def index_line(url: str, lastmod: str) -> bytes:
    """One `<sitemap>` of an index; `lastmod` is when that file's bytes last changed (M7)."""
    return f"<sitemap><loc>{escape(url)}</loc><lastmod>{lastmod}</lastmod></sitemap>\n".encode()
