"""HTML sitemap for visitors: a contents page, and a page of links for each block of a shard.

Pure: fragments and titles in, finished bytes out. Plain HTML with real links, no script; one
stylesheet. A page changes only with its block, and with the number of pages of its shard.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from urllib.parse import unquote, urlsplit

from shared.sitemap.shards import CONTENTS, Shard
from shared.sitemap.shards import CONTENTS_STYLE as STYLE
from shared.sitemap.xml_text import legal

PAGE_NAME = re.compile(r"sitemap-([a-z0-9-]{1,100})-([1-9][0-9]{0,6})-([1-9][0-9]{0,5})\.html")

_HYPHENS = re.compile(r"(?<![0-9])-|-(?![0-9])")  # not those of a month
_START = "<!doctype html>\n<!-- sitemapd: for visitors -->\n"


def name_of(shard: Shard, page: int) -> str:
    """The name of page `page` of a shard, from 1."""
    return f"sitemap-{shard.section}-{shard.number}-{page}.html"


def parse_name(name: str) -> tuple[Shard, int] | None:
    """The shard and page that `name` belongs to; None for any other file."""
    found = PAGE_NAME.fullmatch(name)
    return (Shard(found[1], int(found[2])), int(found[3])) if found else None


def is_ours(content: bytes) -> bool:
    """True if `content` is a page that is made here, or the beginning of one."""
    start = _START.encode()
    return bool(content) and start.startswith(content[: len(start)])


def contents(site: str, sections: Mapping[str, Sequence[Shard]]) -> bytes:
    """Render CONTENTS: the first page of each shard, by section."""
    parts = []
    for section, shards in sections.items():
        links = [
            f'<li><a href="{name_of(shard, 1)}">{_heading(shard)}</a></li>\n' for shard in shards
        ]
        ident = escape(section)
        parts.append(
            f'<section aria-labelledby="s-{ident}">\n<h2 id="s-{ident}">{_words(section)}</h2>\n'
            f"<ul>\n{''.join(links)}</ul>\n</section>\n"
        )
    return _document(f"Sitemap of {escape(site)}", f"<h1>Sitemap of {escape(site)}</h1>\n", parts)


def page(
    site: str, shard: Shard, number: int, pages: int, links: Iterable[tuple[str, str]]
) -> bytes:
    """Render page `number` of the `pages` of a shard: `links` are pairs of loc and title (empty:
    none).
    """
    listed = "".join(
        f'<li><a href="{escape(loc)}">{escape(legal(title) or readable(loc))}</a></li>\n'
        for loc, title in links
    )
    heading = _heading(shard) + (f", page {number} of {pages}" if pages > 1 else "")
    head = (
        f'<nav aria-label="Breadcrumb"><a href="{CONTENTS}">Sitemap of {escape(site)}</a></nav>\n'
        f"<h1>{heading}</h1>\n"
    )
    turning = _turning(shard, number, pages) if pages > 1 else ""
    body = f'<ul class="pages">\n{listed}</ul>\n{turning}'
    return _document(f"{heading} - Sitemap of {escape(site)}", head, [body])


def readable(loc: str) -> str:
    """The path of a page as people read it; as it is where it cannot be decoded."""
    parts = urlsplit(loc)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        text = unquote(path, errors="strict")
    except UnicodeDecodeError:
        return path
    return text if text.isprintable() and text.strip() else path or "/"


def _turning(shard: Shard, number: int, pages: int) -> str:
    """The links to all pages of the shard."""

    def link(page: int, text: str, more: str = "") -> str:
        return f'<li><a href="{name_of(shard, page)}"{more}>{text}</a></li>\n'

    items = [
        f'<li><a href="{name_of(shard, n)}" aria-current="page">{n}</a></li>\n'
        if n == number else link(n, str(n))
        for n in range(1, pages + 1)
    ]  # fmt: skip
    before = link(number - 1, "Previous", ' rel="prev"') if number > 1 else ""
    after = link(number + 1, "Next", ' rel="next"') if number < pages else ""
    return f'<nav aria-label="Pages"><ul>\n{before}{"".join(items)}{after}</ul></nav>\n'


def _heading(shard: Shard) -> str:
    return _words(shard.section) + (f", part {shard.number}" if shard.number > 1 else "")


def _words(section: str) -> str:
    return escape(_HYPHENS.sub(" ", section).capitalize())


def _document(title: str, head: str, parts: Iterable[str]) -> bytes:
    start = (
        f'{_START}<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{title}</title>\n<link rel="stylesheet" href="{STYLE}">\n</head>\n<body>\n'
        f"<header>\n{head}</header>\n<main>\n"
    )
    return "".join((start, *parts, "</main>\n</body>\n</html>\n")).encode()
