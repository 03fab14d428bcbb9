"""The HTML sitemap for visitors, on a real store and real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import html

from shared.sitemap import html_writer
from shared.sitemap.shards import Shard
from tests.integration.rig import BASE, Rig, as_written, restarted
from worker.checks.file_monitor import FileMonitor
from worker.publishing.removal import remove_files

ON: dict[str, Any] = {"html": True}
OPTIONS: dict[str, Any] = {"shard_urls": 6, "block_urls": 2, "shrink_least": 1_000}
CONTENTS = "sitemap-contents.html"


def page(path: object, title: str = "", kind: str = "upsert", **members: Any) -> dict[str, Any]:
    given = {"title": title} if title else {}
    return {"type": kind, "loc": f"{BASE}{path}"} | given | members


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", outputs=ON, **OPTIONS)


def again(rig: Rig, **options: Any) -> Rig:
    """The same site after a restart with other settings."""
    return restarted(rig, **(OPTIONS | options))


def names(rig: Rig) -> list[str]:
    return sorted(
        path.name for path in rig.root.iterdir() if html_writer.parse_name(path.name) is not None
    )


def visited(rig: Rig) -> dict[str, str]:
    """loc -> text of every link to a page that a visitor reaches from the contents; the site is
    right besides.
    """
    rig.check()
    found, seen, left = dict[str, str](), set[str](), [CONTENTS]
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        for link in html.fromstring((rig.root / name).read_bytes()).iter("a"):
            if link.get("href").startswith(BASE):
                assert link.get("href") not in found
                found[link.get("href")] = link.text
            else:
                left.append(link.get("href"))
    assert {*names(rig)} == seen - {CONTENTS}, "each page is reached"
    assert found.keys() == rig.listed().keys()
    return found


def test_a_visitor_reaches_every_page_by_its_title_or_its_path(rig: Rig) -> None:
    rig.do(page("a", "About us"), page("blog/caf%C3%A9?x=1&y=2"), page("c", "<b>&\"'"), page(""))

    assert visited(rig) == {
        f"{BASE}a": "About us", f"{BASE}blog/caf%C3%A9?x=1&y=2": "/blog/caf\u00e9?x=1&y=2",
        f"{BASE}c": "<b>&\"'", BASE: "/",
    }  # fmt: skip
    assert names(rig) == ["sitemap-pages-1-1.html", "sitemap-pages-1-2.html"]


def test_an_event_writes_the_page_of_its_block_and_no_other(rig: Rig) -> None:
    rig.do(*(page(n) for n in range(12)))
    before = {path.name: as_written(path) for path in rig.root.iterdir()}

    rig.do(page(3, "Three"))
    after = {path.name: as_written(path) for path in rig.root.iterdir()}

    assert {name for name in after if after[name] != before[name]} - {".sitemapd"} == {
        "sitemap-pages-1-2.html"
    }
    rig.do(page(3, "Three", lastmod="2026-01-01"))
    assert as_written(rig.root / "sitemap-pages-1-2.html") == after["sitemap-pages-1-2.html"]
    assert visited(rig)[f"{BASE}3"] == "Three"


def test_a_title_that_changes_beside_another_page_of_its_file_is_shown(rig: Rig) -> None:
    rig.do(*(page(n, f"T{n}") for n in range(6)))
    rig.do(page(1, "New", priority=0.5), page(5, "Newer"), page(4))

    found = visited(rig)
    assert (found[f"{BASE}1"], found[f"{BASE}5"], found[f"{BASE}4"]) == ("New", "Newer", "/4")


def test_pages_of_a_file_that_shrinks_are_removed_and_the_contents_with_the_last(rig: Rig) -> None:
    rig.do(*(page(n, f"T{n}") for n in range(6)))
    rig.do(page(2, kind="delete"), page(3, kind="delete"))

    assert len(visited(rig)) == 4
    assert names(rig) == ["sitemap-pages-1-1.html", "sitemap-pages-1-2.html"]
    rig.do(*(page(n, kind="delete") for n in (0, 1, 4, 5)))
    assert names(rig) == []
    assert not (rig.root / CONTENTS).exists()
    assert not rig.client.keys("*titles:*")
    rig.check()


def test_news_list_a_page_once(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path / "public", outputs=ON, sections={"news": {"news": True}})
    news = {"publication": {"name": "N", "language": "en"}, "title": "T"}
    rig.do(page("a", section="news", news=news | {"publication_date": rig.now()}))

    assert visited(rig) == {f"{BASE}a": "T"}


@pytest.mark.parametrize("form", ["xml", "xml.gz", "encoded", "txt"])
def test_every_form_of_the_sitemap_has_the_same_pages(
    store: redis.Redis, tmp_path: Path, form: str
) -> None:
    rig = Rig(store, tmp_path / "public", outputs=ON, form=form, **OPTIONS)
    rig.do(*(page(n, f"T{n}") for n in range(8)))
    rig.do(page(0, kind="delete"), page(7, "Last"))

    expected = {f"{BASE}{n}": f"T{n}" for n in range(1, 7)} | {f"{BASE}7": "Last"}
    links = {
        link.get("href"): link.text
        for name in names(rig)
        for link in html.fromstring((rig.root / name).read_bytes()).iter("a")
        if link.get("href").startswith(BASE)
    }
    assert links == expected
    assert not list(rig.audit().verify())


def test_switched_on_late_all_pages_are_written_and_switched_off_all_go(
    store: redis.Redis, tmp_path: Path
) -> None:
    plain = Rig(store, tmp_path / "public", **OPTIONS)
    plain.do(*(page(n, f"T{n}") for n in range(14)))
    assert not plain.client.keys("*titles:*")

    rig = again(plain, outputs=ON)
    assert len(visited(rig)) == 14
    rig.do(page(1, "One"))
    assert visited(rig)[f"{BASE}1"] == "One"
    off = again(rig)
    assert names(off) == []
    assert {CONTENTS, "sitemap-contents.css"}.isdisjoint(path.name for path in rig.root.iterdir())
    assert not off.client.keys("*titles:*")
    off.check()
    assert len(visited(again(off, outputs=ON))) == 14


@pytest.mark.parametrize("name", ["sitemap-pages-1-1.html", CONTENTS])
@pytest.mark.parametrize("change", ["removed", "torn"])
def test_a_page_changed_by_hand_is_restored(rig: Rig, name: str, change: str) -> None:
    rig.do(*(page(n) for n in range(4)))
    before = (rig.root / name).read_bytes()
    (rig.root / name).unlink()
    if change == "torn":
        (rig.root / name).write_bytes(before[:10])
    assert [found.name for found in rig.audit().verify()] == [name]
    monitor = FileMonitor(rig.state, rig.name, rig.site)
    assert [{**monitor.round().wrong} for _ in range(2)][1].keys() == {name}

    rig.settle()

    assert (rig.root / name).read_bytes() == before


def test_a_page_of_any_file_is_restored(rig: Rig) -> None:
    rig.do(*(page(n) for n in range(14)))
    for name in ("sitemap-pages-2-3.html", "sitemap-pages-3-1.html"):
        (rig.root / name).unlink()
    monitor = FileMonitor(rig.state, rig.name, rig.site)
    while monitor.round().more:
        pass

    rig.settle()

    assert len(visited(rig)) == 14


def test_rebuild_restores_every_page(rig: Rig) -> None:
    rig.do(*(page(n, f"T{n}") for n in range(14)))
    before = {name: (rig.root / name).read_bytes() for name in names(rig)}
    for name in before:
        (rig.root / name).unlink()
    (rig.root / "sitemap-pages-9-1.html").write_bytes(next(iter(before.values())))
    assert {"sitemap-pages-9-1.html", *before} == {found.name for found in rig.audit().verify()}

    rig.audit().rebuild()

    assert {name: (rig.root / name).read_bytes() for name in before} == before


def test_a_stylesheet_and_a_page_of_others_stay(rig: Rig) -> None:
    rig.root.mkdir(exist_ok=True)
    (rig.root / "sitemap-contents.css").write_text("body { color: red }")
    rig.do(page("a"))

    assert (rig.root / "sitemap-contents.css").read_text() == "body { color: red }"
    rig.check()
    remove_files(rig.client, rig.name, rig.site)
    assert {path.name for path in rig.root.iterdir()} == {"sitemap-contents.css"}


def test_a_page_that_moves_leaves_its_old_page(rig: Rig) -> None:
    rig = again(rig, outputs=ON, sections={"docs": {}})
    rig.do(page("a", "A"), page("b", "B"))
    rig.do(page("a", "A", section="docs"))

    assert visited(rig) == {f"{BASE}a": "A", f"{BASE}b": "B"}
    assert "sitemap-docs-1-1.html" in names(rig)


def test_a_second_target_gets_the_same_pages(store: redis.Redis, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    targets = [{"url": str(other), "name": "second"}]
    rig = Rig(store, tmp_path / "public", outputs=ON, targets=targets, **OPTIONS)

    def followed() -> dict[str, bytes]:
        for follower in rig.audit()._followers:
            while follower.tick():
                pass
        return {path.name: path.read_bytes() for path in other.glob("sitemap-*")}

    rig.do(*(page(n, f"T{n}") for n in range(14)))
    assert followed() == {path.name: path.read_bytes() for path in rig.root.glob("sitemap-*")}
    rig.do(page(1, "One"), page(12, kind="delete"), page(13, kind="delete"))
    assert followed() == {path.name: path.read_bytes() for path in rig.root.glob("sitemap-*")}


def test_names_are_read_as_they_were_made() -> None:
    shard = Shard("posts-2026-11", 12)

    assert html_writer.parse_name(html_writer.name_of(shard, 3)) == (shard, 3)
    assert html_writer.parse_name("sitemap.html") is None
    assert html_writer.parse_name("sitemap-contents.html") is None
