"""Shards that have become nearly empty are drained into the tail, page by page as they are."""

from __future__ import annotations

from pathlib import Path

import redis

from shared.events.event import parse
from shared.sitemap.shards import Shard
from tests.integration.independent import Published
from tests.integration.pipeline import NAME, Pipeline
from worker.publishing.upkeep.shard_compaction import drain_emptiest

ORIGIN = "https://www.example.com"


def drain(site: Pipeline) -> Shard | None:
    return drain_emptiest(site.pump.pages, site.state)


def upsert(n: int, lastmod: str = "2026-11-01") -> dict[str, object]:
    return {"type": "upsert", "loc": f"{ORIGIN}/{n:03}", "lastmod": lastmod}


def test_a_shard_under_a_quarter_is_emptied_and_leaves_index_and_disk(
    store: redis.Redis, tmp_path: Path
) -> None:
    site = Pipeline(store, tmp_path, ORIGIN, shard_urls=100, shrink_share=1)
    site.send([upsert(n) for n in range(250)])
    site.drain()
    site.send([{"type": "delete", "loc": f"{ORIGIN}/{n:03}"} for n in range(80)])
    site.drain()
    before = site.sums()
    assert len(Published(tmp_path, ORIGIN).shards) == 3

    drained = drain(site)
    site.drain()

    assert str(drained) == "pages/1"
    published = Published(tmp_path, ORIGIN)
    assert [f"{ORIGIN}/pages-2.xml", f"{ORIGIN}/pages-3.xml"] == published.shards
    assert {f"{ORIGIN}/{n:03}" for n in range(80, 250)} == {
        page.loc for pages in published.pages.values() for page in pages
    }
    after = site.sums()
    assert not (tmp_path / "pages-1.xml").exists()
    assert before["pages-2.xml"] == after["pages-2.xml"]
    assert drain(site) is None


def test_a_page_that_changes_meanwhile_is_not_taken_back_in_time(
    store: redis.Redis, tmp_path: Path
) -> None:
    site = Pipeline(store, tmp_path, ORIGIN, shard_urls=100, shrink_share=1)
    site.send([upsert(n) for n in range(150)])
    site.send([{"type": "delete", "loc": f"{ORIGIN}/{n:03}"} for n in range(90)])
    site.drain()
    site.inbox.accept([parse(upsert(95, "2026-11-20"), site.settings.sites[NAME].rules)])
    site.pump.apply_all()

    drain(site)
    site.drain()

    published = Published(tmp_path, ORIGIN)
    lastmods = {page.loc: page.lastmod for pages in published.pages.values() for page in pages}
    assert lastmods[f"{ORIGIN}/095"] == "2026-11-20"
    assert len(lastmods) == 60
