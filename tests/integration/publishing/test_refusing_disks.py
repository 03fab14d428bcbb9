"""Web roots that are full, read-only or not safe: the old files stay, and all is made up for."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.store.counting import counter_buffer
from shared.store.counting.counters import Counters
from tests.file_systems import fill, small_file_system
from tests.integration.rig import BASE, Rig
from worker.publishing.targets.web_root import WebRoot


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", shard_urls=4, robots="create")


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def hold_back(rig: Rig, *items: dict[str, Any]) -> None:
    """Apply, and publish nothing."""
    rig.send(*items)
    rig.pump().apply_all()


def temps(rig: Rig) -> list[str]:
    return [path.name for path in rig.root.glob(".sitemapd-*")]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_file_system(tmp_path / "disk") as place:
        yield place


def test_a_full_disk_keeps_the_old_files_and_is_made_up_for(
    store: redis.Redis, small_disk: Path
) -> None:
    """RELIABILITY F9."""
    rig = Rig(store, small_disk / "public", shard_urls=50)
    rig.do(*(upsert(f"p/{n}") for n in range(100)))
    before = rig.files()
    filler = small_disk / "filler"
    fill(filler)
    descriptors = len(os.listdir("/proc/self/fd"))

    rig.send(*(upsert(f"p/{n}", lastmod="2020-01-01") for n in range(100)))
    for _ in range(5):
        rig.pump().run()
    hold_back(rig, upsert("p/99", lastmod="2020-01-02"))

    assert before == rig.files()
    assert not temps(rig)
    assert rig.state.dirty()
    counter_buffer.of(store).flush(store)
    assert Counters(store, "demo").totals()[0]["publish_failed:full"] >= 5
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1
    filler.unlink()
    rig.settle()
    assert rig.listed()[BASE + "p/99"] == "2020-01-02"
    rig.check()


def test_a_disk_that_is_full_from_the_start_leaks_nothing(
    store: redis.Redis, small_disk: Path
) -> None:
    rig = Rig(store, small_disk / "public")
    (small_disk / "public").mkdir()
    fill(small_disk / "filler")
    rig.send(upsert("a"))
    pump = rig.pump()
    pump.run()
    descriptors = len(os.listdir("/proc/self/fd"))

    for _ in range(20):
        pump.run()

    assert len(os.listdir("/proc/self/fd")) <= descriptors
    (small_disk / "filler").unlink()
    rig.settle()
    rig.check()


def test_a_read_only_web_root_keeps_the_old_files_and_is_made_up_for(
    store: redis.Redis, small_disk: Path
) -> None:
    """RELIABILITY F10."""
    rig = Rig(store, small_disk / "public")
    rig.do(upsert("a"))
    before = rig.files()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    rig.send(upsert("a", lastmod="2020-01-01"))
    rig.pump().run()
    assert before == rig.files()

    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    rig.settle()
    assert rig.listed() == {BASE + "a": "2020-01-01"}
    rig.check()


def test_a_web_root_that_others_can_write_is_refused(rig: Rig) -> None:
    """RELIABILITY T20."""
    rig.root.mkdir()
    rig.root.chmod(0o777)
    rig.send(upsert("a"))
    rig.pump().run()
    assert not rig.files()

    rig.root.chmod(0o755)
    rig.settle()
    rig.check()


def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(rig: Rig, tmp_path: Path) -> None:
    """RELIABILITY T20."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    rig.do(upsert("a"))
    for name in ("pages-1.xml", "sitemap.xml"):
        (rig.root / name).unlink()
        (rig.root / name).symlink_to(victim)

    rig.do(upsert("a", lastmod="2020-01-01"))

    assert victim.read_bytes() == b"precious"
    assert not (rig.root / "pages-1.xml").is_symlink()
    rig.check()


def test_what_a_dead_publisher_left_half_written_is_swept(rig: Rig) -> None:
    rig.root.mkdir()
    (rig.root / ".sitemapd-0011223344556677").write_bytes(b"<urlset")

    rig.do(upsert("a"))

    assert not temps(rig)


def test_files_can_be_read_by_a_web_server_of_another_account(rig: Rig) -> None:
    """RELIABILITY T21."""
    before = os.umask(0o077)
    try:
        rig.do(upsert("a"))
    finally:
        os.umask(before)

    for name in ("pages-1.xml", "sitemap.xml", "sitemap.css", "robots.txt"):
        assert (rig.root / name).stat().st_mode & 0o777 == 0o644


def test_files_that_vanish_leave_nothing_open(rig: Rig) -> None:
    WebRoot(rig.root)
    descriptors = len(os.listdir("/proc/self/fd"))

    for _ in range(10):
        WebRoot(rig.root)

    assert len(os.listdir("/proc/self/fd")) <= descriptors
