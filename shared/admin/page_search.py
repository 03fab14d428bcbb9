"""Search among the published pages of a site, by a URL in any spelling or by a part of one."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple
from urllib.parse import quote, unquote

import redis

from shared.config.sites.site import Site
from shared.errors import UrlError
from shared.sitemap import fragments, shards, urls
from shared.sitemap.shards import Shard
from shared.sitemap.xml_text import escape
from shared.store.pages.changes import unpacked
from shared.store.pages.lookup import PageLookup
from shared.store.publishing.publish_state import PublishState

_REST = re.compile(r"(?:[a-z]+://[^/?#]*)?([^?#]*)(\?[^#]*)?", re.IGNORECASE)
_INDEX = re.compile(r"/index\.(?:html?|php)$", re.IGNORECASE)
_PATH_SAFE = "!$&'()*+,;=:@/"


class ListedPage(NamedTuple):
    """A page in a published file: its loc, the name of the file, its lastmod or an empty text."""

    loc: str
    file: str
    lastmod: str


class Listing(NamedTuple):
    """Listing of one URL in the published files.

    `loc` is its canonical form, empty if it cannot be listed on this site; `page` is None if it is
    not listed; `others` are listed pages whose URL is the same but for its spelling: scheme, host,
    capitals, escapes, final slash, index file, query.
    """

    loc: str
    page: ListedPage | None
    others: list[ListedPage]


class Matches(NamedTuple):
    """Pages whose URL contains a text: at most as many as were asked for, in the order of files.

    `searched` of `files` files were read; `after` is the last one, empty if none is left to read.
    """

    pages: list[ListedPage]
    searched: int
    files: int
    after: str


class PageSearch:
    """Reader of the published blocks of one site; unpublished patches are not seen."""

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._site = site
        self._lookup = PageLookup.of(client, name, site)
        self._state = PublishState(client, name)

    def count(self) -> int:
        """Return the number of listed pages, patches not yet published included."""
        return self._lookup.count()

    def listing(self, text: str) -> Listing:
        """Return what is published of the URL `text`, of any host. Raises StoreError."""
        locs = dict.fromkeys(spellings(text, self._site.base))
        found = dict(self._published(list(locs)))
        try:
            loc = urls.canonical(text.partition("#")[0], self._site.base)
        except UrlError:
            loc = ""
        return Listing(loc, found.pop(loc, None), list(found.values()))

    def _published(self, locs: list[str]) -> Iterator[tuple[str, ListedPage]]:
        if not locs:
            return
        pages = unpacked(self._lookup.records(locs)[0])
        known = {loc: page for loc, page in pages.items() if page is not None}
        for loc, (shard, fragment) in self._lookup.published(known).items():
            yield loc, self._page(shard, fragment)

    def containing(self, part: str, *, after: str = "", most: int = 20, seconds: float) -> Matches:
        """Return published pages whose URL contains `part`, in any capitals.

        Reads the files that follow `after`, an earlier result, until `most` pages are found or
        `seconds` have passed; at least one file. Raises StoreError, ShardError.
        """
        end = time.monotonic() + seconds
        files = sorted(self._state.files(self._state.sections()))
        names = list(map(str, files))
        start = names.index(after) + 1 if after in names else 0
        wanted, found = escape(part).encode().lower(), list[ListedPage]()
        for at, shard in enumerate(files[start:], start + 1):
            for block in self._state.content(shard).values():
                found += (
                    self._page(shard, each) for each in fragments.matching(block.raw(), wanted)
                )
            if len(found) >= most or time.monotonic() > end:
                last = str(shard) if at < len(files) else ""
                return Matches(found[:most], at, len(files), last)
        return Matches(found, len(files), len(files), "")

    def _page(self, shard: Shard, fragment: bytes) -> ListedPage:
        entry = fragments.parse(fragment)
        return ListedPage(entry.loc, shards.file_name(shard, self._site.form), entry.lastmod or "")


def spellings(text: str, base: urls.Base) -> Iterator[str]:
    """Yield the canonical URLs below `base` that people may mean by `text`, the exact one first.

    At most 24. A text without scheme is taken for a path.
    """
    match = _REST.match(text.strip())
    assert match is not None  # every part of the pattern may be empty
    path, query = match[1] or "/", match[2] or ""
    plain = quote(unquote(path), safe=_PATH_SAFE)
    for written, case in product(
        dict.fromkeys((path, plain, _INDEX.sub("/", plain))), (str, str.lower)
    ):
        same = case(written)
        turned = same.rstrip("/") if same.endswith("/") else f"{same}/"
        for each, rest in product((same, turned), dict.fromkeys((query, ""))):
            try:
                yield urls.canonical(f"{base.origin}{each or '/'}{rest}", base)
            except UrlError:
                continue


def plain(listing: Listing) -> Mapping[str, object]:
    """Return `listing` as JSON values: `loc`, `listed`, `file` and `lastmod`, `others`."""
    answer: dict[str, object] = {"loc": listing.loc, "listed": listing.page is not None}
    if listing.page is not None:
        answer |= listing.page._asdict()
    return answer | {"others": [page._asdict() for page in listing.others]}
