"""The stylesheet and sitemap.html in the web root: written, put right, switched off, never over
what is the site's own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.integration.rig import Rig, as_written
from worker.checks.file_monitor import FileMonitor
from worker.publishing.static import static_pages

OWN = b"<!doctype html>\n<title>All our pages</title>\n"


def upsert(n: int) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"https://www.example.com/{n}"}


def restarted(rig: Rig, root: Path, **options: Any) -> Rig:
    return Rig(rig.client, root, **options)


def check(rig: Rig) -> dict[str, str]:
    """What two rounds of a checker hold to be wrong."""
    by = FileMonitor(rig.state, rig.name, rig.site)
    return dict(by.round().wrong) | dict(by.round().wrong)


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    rig = Rig(store, tmp_path)
    rig.do(upsert(1))
    return rig


def test_both_are_written_once_and_no_event_touches_them(rig: Rig) -> None:
    before = {name: as_written(rig.root / name) for name in static_pages.NAMES}

    rig.do(upsert(2))

    assert before == {name: as_written(rig.root / name) for name in static_pages.NAMES}
    for name in static_pages.NAMES:
        assert (rig.root / name).read_bytes() == static_pages.content(name)


def test_switched_off_they_go_at_the_next_start(rig: Rig, tmp_path: Path) -> None:
    off = restarted(rig, tmp_path, viewer=False)
    styled = dict.fromkeys(("pages-1.xml", "sitemap.xml"), "differs")
    assert check(off) == dict.fromkeys(static_pages.NAMES, "unwanted") | styled

    off.do(upsert(2))

    assert not any((tmp_path / name).exists() for name in static_pages.NAMES)
    assert check(off) == {}
    off.check()
    assert b"xml-stylesheet" not in b"".join(file.content for file in off.files().values())


def test_switched_off_what_was_edited_stays(rig: Rig, tmp_path: Path) -> None:
    edited = {name: static_pages.content(name) + b"\n" for name in static_pages.NAMES}
    for name, content in edited.items():
        (tmp_path / name).write_bytes(content)

    off = restarted(rig, tmp_path, viewer=False)
    off.do(upsert(2))

    assert {name: (tmp_path / name).read_bytes() for name in static_pages.NAMES} == edited
    assert check(off) == {}


def linked(path: Path) -> None:
    path.with_name("own.txt").write_bytes(OWN)
    path.symlink_to("own.txt")


@pytest.mark.parametrize("put", [lambda path: path.write_bytes(OWN), linked, Path.mkdir])
def test_a_page_of_the_site_of_that_name_is_left_alone(
    store: redis.Redis, tmp_path: Path, put: Callable[[Path], None]
) -> None:
    path = tmp_path / "sitemap.html"
    put(path)
    before = as_written(path)

    rig = Rig(store, tmp_path)
    rig.do(upsert(1))

    assert as_written(path) == before
    assert check(rig) == {}
    rig.do(upsert(2))
    assert as_written(path) == before


@pytest.mark.parametrize("size", [0, 10, 1000])
def test_ours_cut_short_or_of_another_version_is_replaced(
    rig: Rig, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "sitemap.html"
    path.write_bytes(path.read_bytes()[:size])
    assert check(rig) == {"sitemap.html": "differs"}

    restarted(rig, tmp_path).do(upsert(2))

    assert path.read_bytes() == static_pages.content("sitemap.html")


def test_one_that_cannot_be_written_keeps_no_page_from_being_published(
    store: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "sitemap.css").mkdir()
    rig = Rig(store, tmp_path)

    rig.do(upsert(1))

    assert list(rig.listed()) == ["https://www.example.com/1"]
    assert (tmp_path / "sitemap.html").exists()
    assert not list(tmp_path.glob(".sitemapd-*"))
