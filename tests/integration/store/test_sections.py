"""Sections split by month, language and path; files without an index; files of text."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.admin.site_status import Inspector
from shared.errors import StoreError
from tests.integration.rig import BASE, Rig

SECTIONS: dict[str, Any] = {
    "posts": {"split": "month", "paths": ["/blog/*"], "shard_urls": 3},
    "shop": {"split": "language"},
}


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def test_a_month_has_its_own_files_and_the_first_is_named_after_it(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL N5, F16."""
    rig = Rig(store, tmp_path / "public", sections=SECTIONS)
    rig.do(*(upsert(f"blog/{n}", published="2025-11-03") for n in range(7)))
    rig.do(upsert("blog/x", published="2025-12-01"), upsert("about"))

    assert set(rig.shard_files()) == {
        "posts-2025-11", "posts-2025-11-2", "posts-2025-11-3", "posts-2025-12", "pages-1",
    }  # fmt: skip
    rig.check()


def test_an_archive_is_not_written_again_when_a_new_month_changes(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL N6."""
    rig = Rig(store, tmp_path / "public", sections=SECTIONS)
    rig.do(upsert("blog/old", published="2025-11-03"))
    before = rig.files()["posts-2025-11.xml"]

    rig.do(upsert("blog/new", published="2026-01-03"))
    rig.do({"type": "delete", "loc": "blog/new"})

    assert rig.files()["posts-2025-11.xml"] == before
    assert "posts-2026-01.xml" not in rig.files()
    rig.check()


def test_two_workers_that_open_a_month_at_once_give_it_one_number(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public", sections=SECTIONS)
    first, second = rig.pump("w1"), rig.pump("w2")
    rig.send(upsert("blog/a", published="2020-01-01"))
    first.run()
    rig.send(upsert("blog/b", published="2020-01-02"), upsert("blog/c", published="2020-02-02"))
    second.run()
    rig.send(upsert("blog/a", published="2020-02-01"))
    first.run()
    rig.settle()

    assert set(rig.shard_files()) == {"posts-2020-01", "posts-2020-02"}
    rig.check()


def test_a_shop_has_files_of_each_language(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path / "public", sections=SECTIONS)
    rig.do(*(upsert(f"{code}/a", section="shop", lang=code) for code in ("de", "pt-BR")))

    assert set(rig.shard_files()) == {"shop-de-1", "shop-pt-br-1"}
    rig.check()


def test_without_an_index_robots_names_every_file(store: redis.Redis, tmp_path: Path) -> None:
    """PROTOCOL N8: Baidu reads no index."""
    rig = Rig(store, tmp_path / "public", index=False, robots="create", shard_urls=2)
    rig.do(*(upsert(f"{n}") for n in range(5)))
    assert named(rig) == [f"{BASE}pages-{n}.xml" for n in (1, 2, 3)]
    assert not (rig.root / "sitemap.xml").exists()

    rig.do(upsert("0", lastmod="2026-01-01"))
    assert named(rig) == [f"{BASE}pages-{n}.xml" for n in (1, 2, 3)]

    rig.do({"type": "delete", "loc": "4"})
    assert named(rig) == [f"{BASE}pages-{n}.xml" for n in (1, 2)]
    assert not list(rig.audit().verify())


def test_an_index_that_is_given_up_is_removed_by_a_rebuild_and_a_strangers_is_not(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public", robots="create")
    rig.do(upsert("a"))
    without = Rig(store, tmp_path / "public", robots="create", index=False, retire_hours=0)

    without.audit().rebuild()
    assert not (rig.root / "sitemap.xml").exists()
    assert named(rig) == [f"{BASE}pages-1.xml"]

    (rig.root / "sitemap.xml").write_text("<urlset/>")
    without.audit().rebuild()
    assert (rig.root / "sitemap.xml").read_text() == "<urlset/>"


def named(rig: Rig) -> list[str]:
    text = (rig.root / "robots.txt").read_text()
    return [line.split()[1] for line in text.splitlines() if line.startswith("Sitemap:")]


def test_a_packed_text_file_is_the_same_text_as_one_gzip_member(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public", form="txt.gz", block_urls=1)
    rig.do(upsert("a?x=1&y='2'"), upsert("b"))
    before = rig.files()["pages-1.txt.gz"].content

    assert gzip.decompress(before) == f"{BASE}a?x=1&y='2'\n{BASE}b\n".encode()
    assert zlib.decompressobj(31).decompress(before) == gzip.decompress(before)
    rig.audit().rebuild()
    assert rig.files()["pages-1.txt.gz"].content == before
    assert not list(rig.audit().verify())


def test_a_text_file_lists_addresses_and_nothing_else(store: redis.Redis, tmp_path: Path) -> None:
    """PROTOCOL F10: one URL per line, not escaped; in an index like any other file (F11)."""
    rig = Rig(store, tmp_path / "public", form="txt", shard_urls=2)
    rig.do(upsert("a?x=1&y='2'"), upsert("b", images=[{"loc": f"{BASE}i.png"}]), upsert("c"))

    assert rig.files()["pages-1.txt"].content == f"{BASE}a?x=1&y='2'\n{BASE}b\n".encode()
    assert rig.files()["pages-2.txt"].content == f"{BASE}c\n".encode()
    assert set(rig.index()["sitemap.xml"]) == {f"{BASE}pages-1.txt", f"{BASE}pages-2.txt"}
    assert not list(rig.audit().verify())

    rig.do({"type": "delete", "loc": "a?x=1&y='2'"})
    assert rig.files()["pages-1.txt"].content == f"{BASE}b\n".encode()
    (rig.root / "pages-1.txt").write_text("gone")
    rig.audit().rebuild()
    assert rig.files()["pages-1.txt"].content == f"{BASE}b\n".encode()


def test_a_reader_that_lives_long_finds_pages_of_a_month_that_another_process_began(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public", sections=SECTIONS)
    rig.do(upsert("blog/old", published="2025-11-03"))
    inspector = Inspector(store, rig.name, rig.site)
    assert inspector.entry(BASE + "blog/old")["section"] == "posts-2025-11"

    rig.do(upsert("blog/new", published="2025-12-01"))

    assert inspector.entry(BASE + "blog/new")["section"] == "posts-2025-12"


def test_a_page_in_a_section_that_was_never_given_a_number_is_an_error_of_ours(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public", sections=SECTIONS)
    rig.do(upsert("blog/a", published="2025-11-03"))
    inspector = Inspector(store, rig.name, rig.site)
    store.hdel(rig.keys.sections, "posts-2025-11")

    with pytest.raises(StoreError, match="section"):
        inspector.entry(BASE + "blog/a")


def test_workers_that_outlive_their_state_number_its_sections_anew(
    store: redis.Redis, tmp_path: Path
) -> None:
    """Both know the same sections, and the emptied store gives their numbers in another order."""
    rig = Rig(store, tmp_path / "public", sections=SECTIONS)
    first, second = rig.pump("w1"), rig.pump("w2")
    for month in ("2020-02", "2020-01"):
        rig.send(upsert(f"blog/{month}", published=f"{month}-01"))
        first.run()
    rig.send(upsert("about"))
    second.run()
    store.flushall()
    for path in rig.root.iterdir():
        path.unlink()

    for pump, month in ((first, "2020-01"), (second, "2020-02"), (first, "2020-03")):
        rig.send(upsert(f"blog/new-{month}", published=f"{month}-01"))
        pump.run()
    rig.settle()

    fresh = Inspector(store, rig.name, rig.site)
    for month in ("2020-01", "2020-02", "2020-03"):
        assert fresh.entry(f"{BASE}blog/new-{month}")["section"] == f"posts-{month}"
    rig.check()
