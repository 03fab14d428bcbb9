"""Report of the last reading of access logs, for the console; and the first fetches of pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.batches import batches
from shared.store.client import answering
from shared.store.keys import keys_of

KEPT_S = 90 * 24 * 3600
MOST_PAGES = 10_000
"""Pages whose first fetches are kept, those published last."""

_CHUNK = 1_000


class FetchedPage(NamedTuple):
    """The first fetch of each crawler after the last publish of a page; in ms since 1970."""

    loc: str
    published_ms: int
    fetched: Mapping[str, int]


def save(client: redis.Redis, site: str, report: Mapping[str, Any]) -> None:
    """Replace the stored report by `report`, without its rows per shard: a site may have
    thousands.
    """
    engines = [
        {name: value for name, value in engine.items() if name != "shards"}
        for engine in report["engines"]
    ]
    with answering():
        client.set(keys_of(site).crawl, json.dumps({**report, "engines": engines}), ex=KEPT_S)


def load(client: redis.Redis, site: str) -> dict[str, Any] | None:
    """Return the stored report; None if it is older than 90 days, or there is none."""
    with answering():
        stored: Any = client.get(keys_of(site).crawl)
    return None if stored is None else dict(json.loads(stored))


def save_pages(client: redis.Redis, site: str, pages: Iterable[FetchedPage]) -> None:
    """Add `pages` to those that earlier logs had: a fetch before a publish counts no more."""
    key, known = _pages(site), dict[str, FetchedPage]()
    with answering():
        for loc, stored in client.hscan_iter(key, count=_CHUNK):
            if (page := _page(loc.decode(), stored)) is not None:
                known[page.loc] = page
    for page in pages:
        before = known.get(page.loc)
        if before is not None and before.published_ms == page.published_ms:
            both = {**page.fetched}
            for crawler, at in before.fetched.items():
                both[crawler] = min(at, both.get(crawler, at))
            page = page._replace(fetched=both)  # noqa: PLW2901
        if before is None or page.published_ms >= before.published_ms:
            known[page.loc] = page
    newest = sorted(known.values(), key=lambda page: page.published_ms)[-MOST_PAGES:]
    with answering():
        pipe = client.pipeline()
        pipe.delete(key)
        for some in batches(newest, _CHUNK):
            stored = {page.loc: json.dumps(page[1:], separators=(",", ":")) for page in some}
            pipe.hset(key, mapping=stored)
        pipe.expire(key, KEPT_S)
        pipe.execute()


def first_fetches(
    client: redis.Redis, site: str, locs: Sequence[str]
) -> dict[str, Mapping[str, int]]:
    """Return the first fetches of those of `locs` that were fetched, by crawler (ms)."""
    if not locs:
        return {}
    with answering():
        stored: Any = client.hmget(_pages(site), [*locs])
    found = (_page(loc, text) for loc, text in zip(locs, stored, strict=True) if text)
    return {page.loc: page.fetched for page in found if page is not None}


def _pages(site: str) -> str:
    return f"{keys_of(site).crawl}:pages"


def _page(loc: str, stored: bytes) -> FetchedPage | None:
    """Return what is stored of a page; None if it is damaged."""
    try:
        published, fetched = json.loads(stored)
        return FetchedPage(loc, int(published), {str(n): int(at) for n, at in fetched.items()})
    except (ValueError, TypeError, AttributeError):
        return None
