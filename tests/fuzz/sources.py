"""What is imported, fuzzed: any bytes give pages, refusals and notes, and the same ones twice."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from shared.errors import DateError, SourceError, UrlError
from shared.sitemap import urls, w3c_dates
from shared.sitemap.urls import Base
from worker.sources import Item, Note, RecordRefusal, SourceRecord, read
from worker.sources.csv_pages import EXTRAS

BASE = Base.parse("https://a.example/")
SPACE = " \t\r\n"
URLSET = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def reader(kind: str) -> Callable[[bytes], None]:
    """The target for `kind`: the bytes are read as a file, from its path."""

    def run(data: bytes) -> None:
        path = _place()
        path.write_bytes(data)
        items, failed = _items(f"{kind}:{path}")
        for item in items:
            _check(item, path.name)
        assert _items(f"{kind}:{path}") == (items, failed)

    return run


@lru_cache(1)
def _place() -> Path:
    """A file of this process's own."""
    folder = tempfile.mkdtemp(prefix="sitemapd-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder) / "source"


def _items(source: str) -> tuple[list[Item], str]:
    items: list[Item] = []
    try:
        items.extend(read(source))
    except SourceError as error:
        return items, str(error)
    return items, ""


def _check(item: Item, name: str) -> None:
    assert item.where.startswith(name)
    if isinstance(item, (Note, RecordRefusal)):
        assert item.rule
        assert item.detail
        item.detail.encode()
        return
    assert isinstance(item, SourceRecord)
    extra = item.extra or {}
    texts = (item.loc, item.lastmod, item.changefreq, item.priority, *map(extra.get, EXTRAS))
    json.dumps(extra, ensure_ascii=False).encode()
    for text in texts:
        if text is not None:
            text.encode()
            assert text == text.strip(SPACE)
    assert item.loc
    try:
        urls.canonical(item.loc, BASE)
        w3c_dates.canonical(item.lastmod or "2026-01-01")
    except (UrlError, DateError):
        pass


SITEMAP = (
    b"<?xml version='1.0'?>\n%b<url><loc>https://a.example/?a&amp;b</loc><lastmod>2026-01-01</lastmod>"
    b"</url><url><loc><![CDATA[https://a.example/2]]></loc></urlset>" % URLSET,
    b"<sitemapindex><sitemap><loc>https://a.example/source</loc></sitemap></sitemapindex>",
    b"<rss version='2.0'><channel><item><link>https://a.example/1</link>%b</item></channel></rss>"
    % b"<pubDate>Sat, 21 Nov 2026 10:00:00 GMT</pubDate>",
    b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='https://a.example/1'/>%b"
    % b"<updated>2026-11-21T10:00:00Z</updated></entry></feed>",
    b"https://a.example/1\nhttps://a.example/2\n",
    b'<!DOCTYPE urlset [<!ENTITY a "x"><!ENTITY b "&a;">]>%b<url>&b;</url></urlset>' % URLSET,
    (URLSET + b"<url><loc>https://a.example/</loc></url></urlset>").decode().encode("utf-16"),
)
CSV = (
    b'loc,lastmod,priority,id\nhttps://a.example/1,2026-01-01,0.5,7\n"https://a.example/""",,,\n',
    b"url;modified\nhttps://a.example/1;2026-01-01\n",
    b"https://a.example/1\n",
)
NDJSON = (
    b'{"loc": "https://a.example/1", "lastmod": "2026-01-01", "id": 7, "noindex": false}\n',
    b'{"loc": "https://a.example/2", "group": "g", "lang": ["en"], "images": [{"loc": "/1"}]}\n',
    b'{"type": "delete", "loc": "https://a.example/1"}\n[]\n{"loc": "\\ud800"}',
)
