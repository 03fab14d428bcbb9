"""Files deleted or edited by hand are put right though no event comes (RELIABILITY F23)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.config.settings import Settings
from shared.sitemap.shards import Shard
from tests.integration.conftest import RedisServer, Wait
from tests.integration.rig import BASE, Rig, as_written, settings
from worker.checks.file_monitor import FileMonitor, FileMonitorResult
from worker.runtime import Runtime

THEIRS = "User-agent: *\nDisallow: /private\n"


def upsert(n: int, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"p/{n:04}", **members}


def checker(rig: Rig, **options: Any) -> FileMonitor:
    return FileMonitor(rig.state, rig.name, rig.site, **options)


def check(rig: Rig, by: FileMonitor | None = None) -> dict[str, str]:
    """What is found wrong, and put right; the worker looks twice before it believes it."""
    by, wrong = by or checker(rig), dict[str, str]()
    for _ in range(3):
        wrong |= by.round().wrong
    rig.settle()
    return wrong


@pytest.fixture
def form() -> str:
    return "xml"


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path, form: str) -> Rig:
    """A site of ten pages in four files and two indexes, beside somebody's robots.txt."""
    root = tmp_path / "public"
    root.mkdir()
    (root / "robots.txt").write_text(THEIRS)
    (root / "index.html").write_text("<!doctype html>\n")
    rig = Rig(store, root, robots="edit", shard_urls=3, index_shards=2, form=form)
    rig.do(*map(upsert, range(10)))
    return rig


def shard_file(rig: Rig) -> Path:
    return rig.root / ("pages-2.xml" if rig.site.form == "xml" else "pages-2.xml.gz")


def unlink(path: Path) -> None:
    path.unlink()


def edit(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"<!-- by hand -->")


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replace_by_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def without_a_trace(path: Path) -> None:
    """Same size, same mtime."""
    at, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))


@pytest.mark.parametrize("form", ["xml", "encoded"])
@pytest.mark.parametrize("known", [False, True], ids=["after a restart", "seen before"])
@pytest.mark.parametrize("hurt", [unlink, edit, truncate, replace_by_link, without_a_trace])
def test_a_shard_file_changed_by_hand_is_put_right(
    rig: Rig, hurt: Callable[[Path], None], known: bool
) -> None:
    before, by, path = rig.files(), checker(rig), shard_file(rig)
    if known:
        by.round()

    hurt(path)
    wrong = check(rig, by)
    (rig.root / "elsewhere").unlink(missing_ok=True)

    assert wrong == {path.name: "missing" if hurt is unlink else "differs"}
    after = rig.files()
    assert {name: file.content for name, file in after.items() if "pages" in name} == {
        name: file.content for name, file in before.items() if "pages" in name
    }
    untouched = before.keys() - {path.name, "sitemap.xml"}
    assert {name for name in before if before[name] == after[name]} >= untouched
    assert not list(rig.audit().verify())
    assert check(rig, by) == {}


@pytest.mark.parametrize("hurt", [unlink, edit, without_a_trace])
@pytest.mark.parametrize("name", ["sitemap.xml", "sitemap-2.xml", "sitemap.css", "sitemap.html"])
def test_another_file_of_ours_changed_by_hand_is_put_right(
    rig: Rig, name: str, hurt: Callable[[Path], None]
) -> None:
    path = rig.root / name
    content, files = path.read_bytes(), rig.files()
    by = checker(rig)
    by.round()

    hurt(path)

    assert list(check(rig, by)) == [name]
    assert path.read_bytes() == content
    assert {name for name in files if files[name] != rig.files()[name]} <= {name}
    assert not list(rig.audit().verify())


def test_a_publisher_that_has_looked_at_the_stylesheet_puts_it_back(rig: Rig) -> None:
    pump, by, path = rig.pump(), checker(rig), rig.root / "sitemap.css"
    rig.send(upsert(1, lastmod="2026-01-01"))
    pump.run()
    content = path.read_bytes()

    path.unlink()
    wrong = [by.round().wrong, by.round().wrong]
    pump.run()

    assert wrong == [{}, {"sitemap.css": "missing"}]
    assert path.read_bytes() == content


def test_our_lines_in_robots_come_back_and_nothing_else_is_touched(rig: Rig) -> None:
    robots = rig.root / "robots.txt"
    by = checker(rig)
    by.round()
    theirs = "User-agent: *\nDisallow: /other\n"
    robots.write_text(theirs)

    assert check(rig, by) == {"robots.txt": "differs"}

    ours = "".join(f"Sitemap: {BASE}{name}\n" for name in ("sitemap.xml", "sitemap-2.xml"))
    assert robots.read_text() == f"{theirs}# BEGIN sitemapd\n{ours}# END sitemapd\n"
    robots.write_text("# another line\n" + robots.read_text())
    before = as_written(robots)
    assert check(rig, by) == {}
    assert as_written(robots) == before


def test_robots_is_left_alone_where_it_is_off(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert(1))
    robots = tmp_path / "robots.txt"
    robots.write_text("# BEGIN sitemapd\nSitemap: https://elsewhere/\n# END sitemapd\n")
    before = as_written(robots)

    assert check(rig) == {}
    assert as_written(robots) == before


def test_nothing_is_written_where_all_is_right(rig: Rig) -> None:
    by, before = checker(rig), {path.name: as_written(path) for path in rig.root.iterdir()}
    keys = {key: rig.client.dump(key) for key in rig.client.keys("{demo}*")}

    for _ in range(5):
        assert check(rig, by) == {}

    assert before == {path.name: as_written(path) for path in rig.root.iterdir()}
    assert keys == {key: rig.client.dump(key) for key in rig.client.keys("{demo}*")}


@pytest.mark.parametrize("by_s", [-1000, 1000])
def test_a_touched_file_is_compared_and_left_alone(rig: Rig, by_s: int) -> None:
    path, by = shard_file(rig), checker(rig)
    by.round()
    at = path.stat().st_mtime + by_s
    os.utime(path, (at, at))
    before = as_written(path)

    assert check(rig, by) == {}
    assert as_written(path) == before
    assert not rig.state.dirty()


def test_a_web_root_that_was_emptied_is_filled_again(rig: Rig) -> None:
    (rig.root / "index.html").unlink()
    before = rig.shard_files()
    for path in rig.root.iterdir():
        path.unlink()

    wrong = check(rig)

    assert set(wrong.values()) == {"missing"}
    assert rig.shard_files() == before
    assert not list(rig.audit().verify())


def test_files_of_another_state_are_not_touched(rig: Rig) -> None:
    """RELIABILITY F22."""
    before = rig.files()
    rig.client.flushall()
    rig.send(upsert(1))
    rig.pump().run()

    assert checker(rig).round() == FileMonitorResult({}, 0, more=False)
    assert rig.files() == before


def test_what_the_shrink_guard_holds_is_put_back_as_it_was_published(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.do(*map(upsert, range(100)))
    before = rig.files()["pages-1.xml"].content
    rig.do(*({"type": "delete", "loc": f"p/{n:04}"} for n in range(90)))
    by = checker(rig)
    assert check(rig, by) == {}

    (tmp_path / "pages-1.xml").unlink()

    assert check(rig, by) == {"pages-1.xml": "missing"}
    assert rig.files()["pages-1.xml"].content == before
    assert list(rig.state.shrink.held()) == [Shard("pages", 1)]


def test_what_a_publisher_has_placed_and_not_yet_recorded_is_no_fault(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert(1))
    stale = {key: store.dump(key) for key in store.keys("*:files") + store.keys("*:blocks:*")}
    rig.do(upsert(2))
    fresh = {key: store.dump(key) for key in stale}
    by = checker(rig)
    for key, value in stale.items():
        store.restore(key, 0, value, replace=True)  # as it is between the rename and the commit

    assert by.round().more
    for key, value in fresh.items():
        store.restore(key, 0, value, replace=True)

    assert check(rig, by) == {}
    assert rig.quiet()


def test_a_round_reads_a_bounded_part_of_many_files(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path, shard_urls=1)
    rig.do(*map(upsert, range(300)))
    size, most = (tmp_path / "pages-1.xml").stat().st_size, 40
    by = checker(rig, round_bytes=30 * size)
    rounds = [by.round() for _ in range(3)]
    assert all(0 < each.read <= most and not each.wrong for each in rounds)

    for path in tmp_path.glob("pages-*.xml"):
        os.utime(path)
    rounds = [by.round()]
    while rounds[-1].more:
        rounds.append(by.round())
    assert all(each.read <= most and not each.wrong for each in rounds)
    assert 300 / most <= len(rounds) < 20

    without_a_trace(tmp_path / "pages-150.xml")
    assert [by.round().wrong for _ in range(2)] == [{}, {"pages-150.xml": "differs"}]


def test_what_changed_without_a_trace_before_a_restart_is_found_in_its_turn(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, shard_urls=1)
    rig.do(*map(upsert, range(60)))
    before = {path.name: as_written(path) for path in rig.root.iterdir()}
    size = (tmp_path / "pages-1.xml").stat().st_size
    without_a_trace(tmp_path / "pages-50.xml")

    by, found = checker(rig, round_bytes=10 * size), list[dict[str, str]]()
    while not (found and found[-1]):
        found.append(dict(by.round().wrong))
        assert len(found) < 10
    rig.settle()

    assert found[-1] == {"pages-50.xml": "differs"}
    assert len(found) > 2
    changed = {p.name for p in tmp_path.iterdir() if as_written(p)[0] != before[p.name][0]}
    assert changed == {"pages-50.xml", "sitemap.xml"}, "the run marker is written in place"


@pytest.fixture
def config(redis_server: RedisServer, tmp_path: Path) -> Settings:
    site = settings(tmp_path / "public", check_interval=0.1).sites["demo"]
    return Settings(redis_url=redis_server.url, sites={"demo": site})


def test_a_worker_at_rest_puts_a_deleted_file_back(
    store: redis.Redis, config: Settings, tmp_path: Path, until: Wait
) -> None:
    rig = Rig(store, tmp_path / "public")
    rig.do(upsert(1))
    path = rig.root / "pages-1.xml"
    content = path.read_bytes()
    plants = [Runtime(config, name) for name in ("w1", "w2")]
    for plant in plants:
        plant.start()
    try:
        path.unlink()
        until(path.exists, "the file to come back")
        until(rig.quiet, "the site to be at rest")
    finally:
        for plant in plants:
            plant.stop()

    assert path.read_bytes() == content
