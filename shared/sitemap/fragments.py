"""Finished bytes of an entry and of the file around it.

A fragment starts with `<url><loc>` and ends with `</url>` and a newline, and neither mark can occur
inside one, because every value is entity-escaped (PROTOCOL F4). Blocks are cut and edited by
these two marks alone, so no other module may write fragments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from html import unescape
from typing import Any

from shared.errors import DateError
from shared.sitemap.entry import Entry
from shared.sitemap.extensions import alternates as links
from shared.sitemap.extensions import images, news, videos
from shared.sitemap.extensions.alternates import Alternates
from shared.sitemap.xml_text import escape

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_STYLE = '<?xml-stylesheet type="text/css" href="sitemap.css"?>\n'

START = b"<url><loc>"
LOC_END = b"</loc>"
END = b"</url>\n"
URLSET_END = b"</urlset>\n"
INDEX_END = b"</sitemapindex>\n"

_LINK = b"<xhtml:link "
_LINK_END = b"/>"  # no value holds one: PROTOCOL F4
_PREFIXED_OR_END = re.compile(rb"<(?:[a-z]+:|/url>)")
_LOC = re.compile(re.escape(START) + rb"([^<]*)" + re.escape(LOC_END))
_LOC_IN_LINE = re.compile(rb"<loc>([^<]*)</loc>")
_OUR_LINE = re.compile(
    rb"<sitemap><loc>[^<]+</loc><lastmod>[0-9-]{10}T[0-9:]{8}Z</lastmod></sitemap>\n"
)
_PLAIN_ENDS = (
    b"</loc></url>\n", b"</lastmod></url>\n", b"</changefreq></url>\n", b"</priority></url>\n",
)  # fmt: skip
_ESCAPED = re.compile("[&'\"<>]")
_TAG = re.compile(r"<(lastmod|changefreq|priority)>([^<]*)</")


@lru_cache(64)
def urlset_start(uses: int = 0, *, styled: bool = True) -> bytes:
    """Bytes before the first `<url>`, with the namespaces of `uses` and no others (PROTOCOL F6).

    With `styled`, the file names the stylesheet.
    """
    names = "".join(f' xmlns:{p}="{uri}"' for bit, p, uri in _EXTENSIONS if uses & bit)
    return _head("urlset", names, styled=styled)


@lru_cache(2)
def index_start(*, styled: bool = True) -> bytes:
    """Bytes before the first `<sitemap>`."""
    return _head("sitemapindex", "", styled=styled)


def _head(root: str, names: str, *, styled: bool) -> bytes:
    """XML declaration (PROTOCOL F3), stylesheet, root element (F1, F2)."""
    style = _STYLE if styled else ""
    return f'{_DECLARATION}{style}<{root} xmlns="{NAMESPACE}"{names}>\n'.encode()


def uses(raw: bytes) -> int:
    """Extensions that the fragments `raw` use: one bit each, for `urlset_start`.

    Values are escaped, so the marks can only be tags.
    """
    if not _EXTENDED.search(raw):
        return 0
    return sum(bit for bit, prefix, _ in _EXTENSIONS if b"<%b:" % prefix.encode() in raw)


_EXTENSIONS = tuple(
    (1 << n, module.PREFIX, module.NAMESPACE)
    for n, module in enumerate((links, images, videos, news))
)
_EXTENDED = re.compile(rb"<(?:xhtml|image|video|news):")
EVERY_USE = (1 << len(_EXTENSIONS)) - 1
OVERHEAD = len(urlset_start(EVERY_USE)) + len(URLSET_END)
"""Maximum bytes of a shard file that are not fragments."""


def key(loc: str) -> bytes:
    """Start of the fragment of `loc`, up to and including `</loc>`: unique within a site."""
    return b"<url><loc>%b</loc>" % escape(loc).encode()


def render(entry: Entry) -> bytes:
    """The fragment of `entry`, children in the order of the XSD (PROTOCOL F5, C0)."""
    plain = render_plain(entry.loc, entry.lastmod, entry.changefreq, entry.priority)
    if entry.alternates or entry.images or entry.videos or entry.news:
        return b"%b%b%b" % (plain[: -len(END)], "".join(_extensions(entry)).encode(), END)
    return plain


def render_plain(
    loc: str, lastmod: str | None, changefreq: str | None, priority: str | None
) -> bytes:
    """The fragment of a page without extensions; None where it states nothing."""
    text = f"<url><loc>{escape(loc) if _ESCAPED.search(loc) else loc}</loc>"
    if lastmod is not None:
        text += f"<lastmod>{lastmod}</lastmod>"
    if changefreq is not None:
        text += f"<changefreq>{changefreq}</changefreq>"
    if priority is not None:
        text += f"<priority>{priority}</priority>"
    return f"{text}</url>\n".encode()


def _extensions(entry: Entry) -> list[str]:
    """Each extension in one run, in our own order: the XSD leaves it open (PROTOCOL C0)."""
    return [
        links.render(entry.alternates),
        images.render(entry.images),
        videos.render(entry.videos),
        news.render(entry.news) if entry.news else "",
    ]


def with_alternates(fragment: bytes, alternates: Alternates) -> bytes:
    """`fragment` with these alternates instead of those it has; every other byte stays."""
    start, end = _links(fragment)
    if start < 0:
        start = end = _after_core(fragment)
    return b"%b%b%b" % (fragment[:start], links.render(alternates).encode(), fragment[end:])


def linked(fragment: bytes) -> bytes:
    """The alternates of `fragment` as bytes, empty if it has none."""
    start, end = _links(fragment)
    return fragment[start:end] if start >= 0 else b""


def _links(fragment: bytes) -> tuple[int, int]:
    """Start and end of the alternates in `fragment`; -1, -1 if it has none."""
    start = fragment.find(_LINK)
    if start < 0:
        return -1, -1
    return start, fragment.index(_LINK_END, fragment.rindex(_LINK)) + len(_LINK_END)


def _after_core(fragment: bytes) -> int:
    """The offset after lastmod, changefreq and priority."""
    match = _PREFIXED_OR_END.search(fragment, fragment.index(LOC_END))
    assert match is not None
    return match.start()


def digest(fragment: bytes) -> bytes:
    """Five bytes that identify a fragment: one change in 10^12 would be taken for none."""
    return blake2b(fragment, digest_size=5).digest()


def find(raw: bytes, loc: str) -> bytes | None:
    """The fragment of `loc` among the fragments `raw`, None if there is none."""
    at = raw.find(key(loc))
    return raw[at : raw.index(END, at) + len(END)] if at >= 0 else None


def matching(raw: bytes, part: bytes) -> Iterator[bytes]:
    """Yield the fragments of `raw` whose loc contains `part`, which is escaped and in lower case;
    the case of ASCII letters does not count.
    """
    lower, end = raw.lower(), 0
    while end < len(raw) and (at := lower.find(part, end)) >= 0:
        start = raw.rindex(START, 0, at + len(START))  # a match may lie in the markup
        end = raw.index(END, start) + len(END)
        if part in lower[start + len(START) : raw.index(LOC_END, start)]:
            yield raw[start:end]


def loc_of(fragment: bytes) -> str:
    """The loc of a fragment that `render` made."""
    return unescape(fragment[len(START) : fragment.index(LOC_END)].decode())


def parse(fragment: bytes) -> Entry:
    """The entry of a fragment that `render` made."""
    rest = fragment[fragment.index(LOC_END) :].decode()
    values: dict[str, Any] = dict(_TAG.findall(rest))
    if not fragment.endswith(_PLAIN_ENDS):
        values |= {
            "images": images.read(rest), "videos": videos.read(rest), "news": news.read(rest),
            "alternates": links.read(rest),
        }  # fmt: skip
    return Entry(loc_of(fragment), **values)


def lines(raw: bytes) -> Iterator[bytes]:
    """The lines of a text sitemap: the locs of the fragments `raw`, not escaped (PROTOCOL F10)."""
    for loc in _LOC.findall(raw):
        yield (unescape(loc.decode()).encode() if b"&" in loc else loc) + b"\n"


def listed_url(line: bytes) -> str:
    """The URL in a line that `index_line` made."""
    found = _LOC_IN_LINE.search(line)
    assert found
    return unescape(found[1].decode())


def index_line(url: str, lastmod: int) -> bytes:
    """One `<sitemap>` of an index; `lastmod`: last change of that file's bytes (PROTOCOL M7), in
    whole seconds since 1970. Raises DateError outside the years 1 to 9999.
    """
    try:
        at = datetime.fromtimestamp(lastmod, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise DateError("the moment lies outside the years 0001 to 9999") from error
    return f"{_index_line_start(url)}{at.isoformat()[:19]}Z</lastmod></sitemap>\n".encode()


@lru_cache(10_000)
def _index_line_start(url: str) -> str:
    return f"<sitemap><loc>{escape(url)}</loc><lastmod>"


def render_index(lines: Iterable[bytes], *, styled: bool = True) -> bytes:
    """An index file of the given `<sitemap>` lines (`index_line`), in their order."""
    return b"".join((index_start(styled=styled), *lines, INDEX_END))


def is_our_index(content: bytes) -> bool:
    """True if `content` begins, with its first line, as `render_index` begins; or is a part of
    that beginning.
    """
    for styled in (True, False):
        start = index_start(styled=styled)
        if content.startswith(start):
            return _OUR_LINE.match(content, len(start)) is not None
        if content and start.startswith(content):
            return True
    return False
