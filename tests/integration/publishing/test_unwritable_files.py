"""A file that cannot be written stops no other: it is set aside, told of, and tried again (T19)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.admin.site_status import Inspector
from shared.config import filenames
from shared.errors import UnwritableError
from shared.sitemap.shards import Shard
from tests.integration.rig import BASE, Rig
from worker.publishing import quarantine
from worker.publishing.targets.web_root import WebRoot


def upsert(n: int, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"p/{n}", **members}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    """Ten pages in five files."""
    rig = Rig(store, tmp_path / "public", shard_urls=2, robots="create", feed=True)
    rig.do(*map(upsert, range(10)))
    return rig


def edit_all(rig: Rig) -> None:
    rig.send(*(upsert(n, lastmod="2026-01-01") for n in range(10)))
    rig.pump().run(5)


def make_immutable(path: Path) -> None:
    if subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode:
        pytest.skip("this file system knows no immutable files")


@pytest.fixture
def obstacle(rig: Rig, request: pytest.FixtureRequest) -> Any:
    """What keeps pages-2.xml from being replaced; gone afterwards."""
    path = rig.root / "pages-2.xml"
    if request.param == "immutable":
        make_immutable(path)
        yield lambda: subprocess.run(["chattr", "-i", path], check=True)
        subprocess.run(["chattr", "-i", path], check=False, capture_output=True)
        return
    path.unlink()
    path.mkdir()
    (path / "inside").touch()
    yield lambda: shutil.rmtree(path)


@pytest.mark.parametrize("obstacle", ["immutable", "directory"], indirect=True)
def test_one_file_that_cannot_be_written_stops_no_other(rig: Rig, obstacle: Any) -> None:
    edit_all(rig)

    others = [rig.root / f"pages-{n}.xml" for n in (1, 3, 4, 5)]
    assert all(b"2026-01-01" in path.read_bytes() for path in others)
    assert rig.state.dirty() == [Shard("pages", 2)]
    assert not list(rig.root.glob(".sitemapd-*"))
    status = Inspector(rig.client, rig.name, rig.site).status()
    (told,) = status["quarantined"]
    assert told["shard"] == "pages/2"
    assert "pages-2.xml" in told["reason"]
    assert status["stopped"] is None
    obstacle()
    rig.settle()
    assert Inspector(rig.client, rig.name, rig.site).status()["quarantined"] == []
    assert rig.listed()[BASE + "p/3"] == "2026-01-01"
    rig.check()


@pytest.mark.parametrize("section", ["../../x", "a" * 300, "a/b", "..", "A", "a\0b", ""])
def test_a_shard_of_a_name_that_no_file_can_have_stops_no_other(rig: Rig, section: str) -> None:
    """As a compromised role, or an older version, could have left it in Redis."""
    bad = Shard(section, 1)
    for part in ("blocks", "shards"):
        key = getattr(rig.keys, part)
        source, target = (
            (key(Shard("pages", 1)), key(bad)) if part == "blocks" else (key("pages"), key(section))
        )
        rig.client.copy(source, target, replace=True)
    before = sorted(rig.root.parent.rglob("*"))
    rig.client.zadd(rig.keys.dirty, {str(bad): 1})

    edit_all(rig)

    assert rig.listed()[BASE + "p/3"] == "2026-01-01"
    assert sorted(rig.root.parent.rglob("*")) == before, "nothing outside"
    assert rig.state.dirty() == [], "what is no shard is forgotten"


@pytest.mark.parametrize("name", ["robots.txt", "atom.xml", "sitemap.css"])
def test_a_file_beside_the_sitemap_that_cannot_be_replaced_stops_nothing(
    rig: Rig, name: str
) -> None:
    path = rig.root / name
    path.write_bytes(b"# theirs\n")
    make_immutable(path)
    try:
        edit_all(rig)
        rig.do(*map(upsert, range(10, 30)))
    finally:
        subprocess.run(["chattr", "-i", path], check=True)

    assert rig.quiet()
    assert len(rig.listed()) == 30
    assert not list(rig.root.glob(".sitemapd-*"))


def test_an_index_that_cannot_be_replaced_is_told_of(rig: Rig) -> None:
    (rig.root / "sitemap.xml").unlink()
    (rig.root / "sitemap.xml").mkdir()
    edit_all(rig)

    stopped = Inspector(rig.client, rig.name, rig.site).status()["stopped"]

    assert "sitemap.xml" in stopped["reason"]
    (rig.root / "sitemap.xml").rmdir()
    rig.settle()
    assert Inspector(rig.client, rig.name, rig.site).status()["stopped"] is None
    rig.check()


def test_an_index_that_cannot_be_written_keeps_no_other_index_back(
    store: redis.Redis, tmp_path: Path
) -> None:
    """The shards that it lists are set aside: no file of theirs changes without it."""
    rig = Rig(store, tmp_path / "public", shard_urls=2, index_shards=2)
    rig.do(*map(upsert, range(10)))
    (rig.root / "sitemap-2.xml").unlink()
    (rig.root / "sitemap-2.xml").mkdir()

    edit_all(rig)

    edited = [n for n in range(1, 6) if b"2026" in (rig.root / f"pages-{n}.xml").read_bytes()]
    assert edited == [1, 2, 5]
    status = Inspector(rig.client, rig.name, rig.site).status()
    assert [each["shard"] for each in status["quarantined"]] == ["pages/3", "pages/4"]
    assert all("sitemap-2.xml" in each["reason"] for each in status["quarantined"])
    assert status["stopped"] is None
    (rig.root / "sitemap-2.xml").rmdir()
    rig.settle()
    rig.check()


def test_a_shard_whose_blocks_are_of_another_type_stops_no_other(rig: Rig) -> None:
    """RELIABILITY T35."""
    blocks = rig.keys.blocks(Shard("pages", 2))
    kept = rig.client.dump(blocks)
    rig.client.delete(blocks)
    rig.client.set(blocks, "x")

    edit_all(rig)

    others = [rig.root / f"pages-{n}.xml" for n in (1, 3, 4, 5)]
    assert all(b"2026-01-01" in path.read_bytes() for path in others)
    (told,) = Inspector(rig.client, rig.name, rig.site).status()["quarantined"]
    assert told["shard"] == "pages/2"
    rig.client.restore(blocks, 0, kept, replace=True)  # type: ignore[arg-type]
    rig.settle()
    rig.check()


def test_an_emptied_file_that_cannot_be_removed_stops_nothing(rig: Rig) -> None:
    path = rig.root / "pages-2.xml"
    make_immutable(path)
    try:
        rig.do(*({"type": "delete", "loc": f"p/{n}"} for n in (2, 3)), upsert(1, priority="0.1"))
    finally:
        subprocess.run(["chattr", "-i", path], check=True)

    assert rig.quiet()
    assert path.exists()
    assert rig.client.zrange(rig.keys.retired, 0, -1) == [b"pages-2.xml"], "tried again"


def test_a_file_that_fails_is_tried_ever_more_rarely(rig: Rig) -> None:
    aside = quarantine.DamagedShards(rig.state.quarantine, rig.name, rig.pump().publisher._tally)
    pauses = []
    for _ in range(9):
        aside.add(Shard("pages", 1), UnwritableError("no"))
        pauses.append(aside.failed[Shard("pages", 1)].pause_s)

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    aside.drop(Shard("pages", 1))
    assert not aside.reasons


@pytest.mark.parametrize(
    "name", ["../x-1.xml", "x/y-1.xml", "index.html", "a.xml", "pages-1.xml.bak", ".htaccess", ""]
)
def test_no_file_of_another_name_is_ever_written(tmp_path: Path, name: str) -> None:
    root = WebRoot(tmp_path / "public")

    with pytest.raises(UnwritableError):
        root.stage(name, [b"x"])

    root.close()
    assert not filenames.possible(name)
    assert list(tmp_path.rglob("*")) == [tmp_path / "public"]
