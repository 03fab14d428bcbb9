"""What a web root does to its files, on real disks that are full, read-only, or swapped away."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.errors import PublishError
from tests.file_systems import fill, mounted, small_file_system
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from worker.publishing.targets.web_root import WebRoot

TEMP = ".sitemapd-"


def page(name: object, kind: str = "upsert", **members: Any) -> dict[str, Any]:
    return {"type": kind, "loc": f"{BASE}{name}"} | members


def put(root: WebRoot, name: str, content: bytes) -> None:
    root.place(root.stage(name, [content]))
    root.sync()


def temps(root: Path) -> list[str]:
    return [name for name in os.listdir(root) if name.startswith(TEMP)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_file_system(tmp_path / "small") as place:
        yield place


@pytest.fixture
def web_root(tmp_path: Path) -> Iterator[WebRoot]:
    root = WebRoot(tmp_path / "public")
    yield root
    root.close()


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("strict_umask")
def test_published_files_can_be_read_by_a_web_server_whatever_the_umask(
    store: redis.Redis, tmp_path: Path
) -> None:
    """RELIABILITY T21."""
    rig = Rig(store, tmp_path, robots="create")

    rig.do(page(1))

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    names = ("pages-1.xml", "sitemap.xml", "robots.txt", "sitemap.css")
    assert {name: modes[name] for name in names} == dict.fromkeys(names, 0o644)


@pytest.mark.parametrize("form", ["xml", "xml.gz"])
def test_a_link_in_the_way_is_replaced_and_not_followed(
    store: redis.Redis, tmp_path: Path, form: str
) -> None:
    """RELIABILITY T20."""
    root, victim = tmp_path / "public", tmp_path / "victim"
    root.mkdir()
    victim.write_bytes(b"precious")
    names = (f"pages-1.{form}", "sitemap.xml", "sitemap.css")
    for name in names:
        (root / name).symlink_to(victim)
    rig = Rig(store, root, form=form)
    rig.audit().publisher.adopt()

    rig.do(page(1))

    assert victim.read_bytes() == b"precious"
    assert not any(path.is_symlink() for path in root.iterdir())
    rig.check()
    (root / names[0]).unlink()
    (root / names[0]).symlink_to(victim)
    assert [difference.name for difference in rig.audit().verify()] == [names[0]]
    assert names[0] in rig.audit().rebuild()
    assert victim.read_bytes() == b"precious"
    rig.check()


def test_half_written_files_of_dead_publishers_are_swept_at_the_start(
    store: redis.Redis, tmp_path: Path
) -> None:
    left = tmp_path / f"{TEMP}0123456789abcdef"
    left.write_bytes(b"<urls")
    other = tmp_path / ".htaccess"
    other.write_bytes(b"deny\n")

    Rig(store, tmp_path).do(page(1))

    assert temps(tmp_path) == []
    assert other.read_bytes() == b"deny\n"


def test_a_replaced_file_is_later_by_a_second_at_least(web_root: WebRoot) -> None:
    """Web servers make tags of whole seconds: RELIABILITY 0, finding 5."""
    path, times = web_root.path / "sitemap.xml", []
    for number in range(5):
        put(web_root, path.name, b"%d" % number)
        times.append(path.stat().st_mtime_ns)

    steps = [later - earlier for earlier, later in pairwise(times)]
    assert min(steps) >= 10**9
    assert all(time % 10**9 == 0 for time in times)


def test_a_file_of_the_future_is_followed_by_one_of_a_second_later(web_root: WebRoot) -> None:
    path = web_root.path / "sitemap.xml"
    path.write_bytes(b"old")
    future = int(path.stat().st_mtime) + 1000
    os.utime(path, (future, future))

    put(web_root, path.name, b"new")

    assert int(path.stat().st_mtime) == future + 1


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_a_directory_in_which_others_can_swap_files_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)

    with pytest.raises(PublishError, match=f"chmod go-w {tmp_path}"):
        WebRoot(tmp_path)


@pytest.mark.parametrize("mode", [0o755, 0o1777, 0o700])
def test_a_directory_in_which_only_we_can_swap_our_files_is_taken(
    tmp_path: Path, mode: int
) -> None:
    tmp_path.chmod(mode)

    WebRoot(tmp_path).close()


def test_a_site_whose_directory_is_refused_waits_until_it_is_mended(
    store: redis.Redis, tmp_path: Path
) -> None:
    tmp_path.chmod(0o775)
    rig = Rig(store, tmp_path)
    rig.send(page(1))

    with silence():
        rig.pump().run()

    assert os.listdir(tmp_path) == []
    assert rig.state.dirty()
    tmp_path.chmod(0o755)
    rig.settle()
    rig.check()


def hold_up(rig: Rig, *items: dict[str, Any], mend: Callable[[], object]) -> None:
    """Publish `items` while that cannot be done, assert that nothing is hurt, and again after
    `mend`. One pump does it all, as in a worker that keeps running.
    """
    pump, before = rig.pump(), rig.files()
    rig.send(*items)
    with silence():
        for _ in range(3):
            pump.run()

    assert rig.files() == before
    assert temps(rig.root) == []
    assert rig.state.dirty()
    assert not rig.inbox.waiting(), "accepted events are applied all the same"
    assert rig.inbox.accept([rig.parse(page("later"))]).slept, "nobody was awake to be waited for"
    mend()
    with silence():
        pump.run()
    assert rig.quiet()
    assert f"{BASE}later" in rig.listed()
    rig.check()


def test_a_full_disk_leaves_the_old_files_and_is_recovered_from(
    store: redis.Redis, small_disk: Path
) -> None:
    """RELIABILITY F9: no temporary file is left either, and the work stays queued."""
    rig = Rig(store, small_disk)
    rig.do(*(page(number) for number in range(20)))
    ballast = small_disk / "ballast"
    fill(ballast)

    hold_up(
        rig, *(page(f"{number}-{'x' * 500}") for number in range(20)), page(0, "delete"),
        mend=ballast.unlink,
    )  # fmt: skip

    assert len(rig.listed()) == 40


def test_a_disk_that_is_full_from_the_start_is_recovered_from(
    store: redis.Redis, small_disk: Path
) -> None:
    rig = Rig(store, small_disk)
    ballast = small_disk / "ballast"
    fill(ballast)
    rig.send(page(1))

    with silence():
        rig.pump().run()

    assert os.listdir(small_disk) == ["ballast"]
    ballast.unlink()
    rig.settle()
    rig.check()


def test_a_read_only_web_root_is_recovered_from(store: redis.Redis, tmp_path: Path) -> None:
    """RELIABILITY F10."""
    root = tmp_path / "public"
    with mounted(root, "--bind", str(root)):
        rig = Rig(store, root, robots="create")
        rig.do(page(1))
        subprocess.run(["mount", "-o", "remount,bind,ro", root], check=True)

        hold_up(
            rig, page(2), page(1, "delete"),
            mend=lambda: subprocess.run(["mount", "-o", "remount,bind,rw", root], check=True),
        )  # fmt: skip

        assert sorted(rig.listed()) == [f"{BASE}2", f"{BASE}later"]


def lose(root: Path) -> None:
    shutil.rmtree(root)


def swap(root: Path) -> None:
    """As a deployment does it: a new directory in the place of the old one."""
    new = root.with_name("new")
    new.mkdir()
    root.rename(root.with_name("old"))
    new.rename(root)


@pytest.mark.parametrize("away", [lose, swap])
@pytest.mark.parametrize("form", ["xml", "encoded"])
def test_a_web_root_that_is_taken_away_is_put_back_with_the_next_change(
    store: redis.Redis, tmp_path: Path, away: Callable[[Path], None], form: str
) -> None:
    root = tmp_path / "public"
    rig = Rig(store, root, robots="create", shard_urls=2, index_shards=2, form=form)
    pump = rig.pump()
    rig.send(*(page(number) for number in range(12)))
    with silence():
        pump.run()
    before = rig.files()
    away(root)

    rig.send(page(0, lastmod="2026-01-01"))
    with silence():
        pump.run()
    rig.settle()

    assert rig.files().keys() == before.keys()
    assert rig.listed()[f"{BASE}0"] == "2026-01-01"
    rig.check()


def test_a_sweep_leaves_what_may_still_be_written_to(tmp_path: Path) -> None:
    """RELIABILITY N9: what a disk did not give up is removed once it is nobody's any more."""
    left = tmp_path / ".sitemapd-0123456789abcdef"
    left.touch()
    root = WebRoot(tmp_path)

    root.sweep(older_s=3600)
    assert left.exists()

    root.sweep()
    assert not left.exists()
    root.close()


@pytest.mark.parametrize("there_was_one", [True, False])
def test_a_file_that_another_replaced_meanwhile_is_left_alone(
    tmp_path: Path, there_was_one: bool
) -> None:
    """RELIABILITY F14: a publisher that slept longer than its lease."""
    root = WebRoot(tmp_path)
    if there_was_one:
        put(root, "pages-1.xml", b"first")
    late = root.stage("pages-1.xml", [b"older"])
    put(root, "pages-1.xml", b"newer")

    with pytest.raises(PublishError, match="replaced by another meanwhile"):
        root.place(late)

    root.discard([late])
    assert os.listdir(tmp_path) == ["pages-1.xml"]
    assert (tmp_path / "pages-1.xml").read_bytes() == b"newer"
    root.close()
