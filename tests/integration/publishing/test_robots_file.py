"""robots.txt in every mode, index files that come and go, and files that are best left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
from protego import Protego

from tests.integration.rig import BASE, Rig, as_written

RULES = b"User-agent: *\r\nDisallow: /private"


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def delete(loc: str) -> dict[str, Any]:
    return {"type": "delete", "loc": loc}


def robots(rig: Rig) -> Path:
    return rig.root / "robots.txt"


def test_off_touches_no_robots_txt(store: redis.Redis, tmp_path: Path) -> None:
    """RELIABILITY T18."""
    rig = Rig(store, tmp_path)
    robots(rig).write_bytes(RULES)
    before = as_written(robots(rig))

    rig.do(upsert("a"))

    assert before == as_written(robots(rig))


def test_off_makes_none(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert("a"))

    assert not robots(rig).exists()


def test_edit_adds_our_lines_to_one_that_is_there_and_makes_none(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, robots="edit")
    rig.do(upsert("a"))
    assert not robots(rig).exists()

    robots(rig).write_bytes(RULES)
    rig.do(upsert("b"))

    content = robots(rig).read_bytes()
    assert content.startswith(RULES)
    parsed = Protego.parse(content.decode())
    assert list(parsed.sitemaps) == [BASE + "sitemap.xml"]
    assert not parsed.can_fetch(BASE + "private", "any")


def test_create_makes_one(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path, robots="create")
    rig.do(upsert("a"))

    assert list(Protego.parse(robots(rig).read_text()).sitemaps) == [BASE + "sitemap.xml"]


@pytest.mark.parametrize("mode", ["edit", "create"])
def test_a_site_without_pages_gives_the_bytes_of_before_back(
    store: redis.Redis, tmp_path: Path, mode: str
) -> None:
    """PROTOCOL R6."""
    rig = Rig(store, tmp_path, robots=mode)
    robots(rig).write_bytes(RULES)
    rig.do(upsert("a"))
    assert robots(rig).read_bytes() != RULES

    rig.do(delete("a"))

    assert robots(rig).read_bytes() == RULES


def test_it_is_written_when_an_index_comes_or_goes_and_at_no_other_time(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, robots="create", shard_urls=1, index_shards=2)
    rig.do(upsert("p/0"))
    first = as_written(robots(rig))
    rig.do(upsert("p/1"), upsert("p/0", lastmod="2020-01-01"))
    assert first == as_written(robots(rig))

    rig.do(upsert("p/2"))

    assert robots(rig).read_text().count("Sitemap:") == 2
    rig.do(delete("p/0"), delete("p/1"))
    assert "Sitemap: https://www.example.com/sitemap-2.xml" in robots(rig).read_text()
    assert robots(rig).read_text().count("Sitemap:") == 1
    rig.check()


@pytest.mark.parametrize(
    "trouble", ["link", "directory", "not UTF-8", "half a marker", "too large"]
)
def test_one_that_is_not_safe_to_edit_is_left_alone_and_holds_up_nothing(
    store: redis.Redis, tmp_path: Path, trouble: str
) -> None:
    """RELIABILITY T18; a link is usual where deployments share one file."""
    rig = Rig(store, tmp_path / "public", robots="create")
    rig.root.mkdir()
    target = tmp_path / "shared-robots.txt"
    if trouble == "link":
        target.write_bytes(RULES)
        robots(rig).symlink_to(target)
    elif trouble == "directory":
        robots(rig).mkdir()
    else:
        content = {"not UTF-8": b"\xff", "half a marker": b"# BEGIN sitemapd\n"}
        robots(rig).write_bytes(content.get(trouble, b"#" * 512_001))
    before = as_written(robots(rig))

    rig.do(upsert("a"))
    rig.do(upsert("b"))

    assert before == as_written(robots(rig))
    assert len(rig.listed()) == 2
    assert rig.quiet()
    assert not list(rig.audit().verify())


def test_an_index_that_lists_nothing_is_gone_though_the_next_one_stays(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, robots="create", shard_urls=1, index_shards=2)
    rig.do(*(upsert(f"p/{n}") for n in range(4)))

    rig.do(delete("p/0"), delete("p/1"))

    assert list(rig.index()) == ["sitemap-2.xml"]
    rig.check()


def test_lines_stand_in_the_order_in_which_shards_came_to_be(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, shard_urls=1, sections={"posts": {}})
    rig.do(upsert("1", section="posts"))
    rig.do(upsert("2"))
    rig.do(*(upsert(str(n), section="posts") for n in range(3, 12)))
    expected = ["posts-1.xml", "pages-1.xml", *(f"posts-{n}.xml" for n in range(2, 11))]

    (lines,) = rig.index().values()

    assert [url.removeprefix(BASE) for url in lines] == expected


@pytest.mark.parametrize(
    ("form", "suffix"), [("xml", ".xml"), ("xml.gz", ".xml.gz"), ("encoded", ".xml")]
)
def test_the_index_names_files_as_they_are_fetched(
    store: redis.Redis, tmp_path: Path, form: str, suffix: str
) -> None:
    rig = Rig(store, tmp_path, form=form)
    rig.do(upsert("a"))

    assert list(rig.index()["sitemap.xml"]) == [f"{BASE}pages-1{suffix}"]


def test_a_site_below_a_directory_is_listed_there(store: redis.Redis, tmp_path: Path) -> None:
    """PROTOCOL L6, N2."""
    rig = Rig(store, tmp_path, base_url=BASE + "shop", robots="create")
    rig.do(upsert("shop/a"))

    assert list(rig.index()["sitemap.xml"]) == [BASE + "shop/pages-1.xml"]
    assert not robots(rig).exists(), "crawlers read that of the host, which is not ours (R1)"
