"""Batch jobs that write all sitemap files anew: the usual answer to a changed page."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from xml.sax.saxutils import escape

from isal import igzip
from lxml import etree

from shared.batches import batches
from shared.sitemap import fragments
from tests.bench.corpus import BASE
from tests.bench.peers.cost import PER_FILE, Files, Page

_LEVEL = 2  # as the blocks of sitemapd


def joined(pages: list[Page]) -> Files:
    """Strings, joined, and the fastest gzip: the least that a rebuild can cost in Python."""
    return _with_index(pages, _join)


def treed(pages: list[Page]) -> Files:
    """A tree of lxml for each file, and zlib at its usual level."""
    return _with_index(pages, _tree)


def _with_index(pages: list[Page], content: Callable[[list[Page]], bytes]) -> Iterator[
    tuple[str, bytes]
]:  # fmt: skip
    lines = []
    for number, part in enumerate(batches(pages, PER_FILE), 1):
        name = f"pages-{number}.xml.gz"
        yield name, content(part)
        now = datetime.now(UTC).isoformat()[:19]
        lines.append(f"<sitemap><loc>{BASE}/{name}</loc><lastmod>{now}Z</lastmod></sitemap>\n")
    yield (
        "sitemap.xml",
        b"".join((fragments.index_start(), "".join(lines).encode(), fragments.INDEX_END)),
    )


def _join(pages: list[Page]) -> bytes:
    urls = "".join(
        [
            f"<url><loc>{escape(loc)}</loc><lastmod>{lastmod}</lastmod></url>\n"
            for loc, lastmod in pages
        ]
    )
    raw = b"".join((fragments.urlset_start(), urls.encode(), fragments.URLSET_END))
    return igzip.compress(raw, _LEVEL)


def _tree(pages: list[Page]) -> bytes:
    urlset = etree.Element("urlset", nsmap={None: fragments.NAMESPACE})
    for loc, lastmod in pages:
        url = etree.SubElement(urlset, "url")
        etree.SubElement(url, "loc").text = loc
        etree.SubElement(url, "lastmod").text = lastmod
    raw = etree.tostring(urlset, xml_declaration=True, encoding="UTF-8")
    return gzip.compress(raw, 6)
