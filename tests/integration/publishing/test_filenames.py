"""One list of names: what is written, what nginx serves, what the guard lets pass (T19, T36)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import redis

from deploy.web import nginx_lines
from shared.config import filenames
from shared.sitemap import shards
from tests.integration.rig import BASE, Rig
from worker.notify import indexnow_key

KEY = "0123456789abcdef"
NOTIFY = {"indexnow": {"key": KEY}}
NEWS = {
    "publication": {"name": "The Example", "language": "en"}, "title": "T",
}  # fmt: skip
FULL: dict[str, Any] = {
    "feed": True, "robots": "create", "shard_urls": 1, "index_shards": 2, "notify": NOTIFY,
    "sections": {"posts": {"split": "month"}, "shop": {"split": "language"}, "a-b-2c": {}},
}  # fmt: skip


def published(rig: Rig) -> set[str]:
    """The names of all that the publisher writes for a site that uses everything."""
    rig.do(
        *({"type": "upsert", "loc": f"p/{n}"} for n in range(6)),
        *(
            {"type": "upsert", "loc": f"n/{n}", "section": "posts", "published": "2025-11-02"}
            for n in range(2)
        ),
        {"type": "upsert", "loc": "de", "section": "shop", "group": "g", "lang": ["zh-Hant-TW"]},
        {"type": "upsert", "loc": "c", "section": "a-b-2c"},
    )
    indexnow_key.ensure(rig.site)
    return {path.name for path in rig.root.iterdir()}


def location(text: str) -> re.Pattern[str]:
    found = re.search(r'location ~ "(.*)" \{', text)
    assert found
    return re.compile(found[1])


@pytest.mark.parametrize("form", shards.FORMS)
def test_every_name_that_is_written_is_in_the_list_and_in_the_lines_for_nginx(
    store: redis.Redis, tmp_path: Path, form: str
) -> None:
    rig = Rig(store, tmp_path / "public", form=form, **FULL)

    names = published(rig)

    assert len(names) > 18
    assert {f"{KEY}.txt", "atom.xml", "rss.xml", "robots.txt", "sitemap.html"} < names
    assert all(map(filenames.possible, names))
    served = location(nginx_lines.lines(rig.name, rig.site))
    visible = {name for name in names if not name.startswith(".")}
    assert {name for name in visible if not served.fullmatch(f"/{name}")} == set()
    for lines in rig.index().values():
        assert all(served.fullmatch(url.removeprefix(BASE.rstrip("/"))) for url in lines)


def test_a_site_that_uses_little_leaves_the_names_of_others_to_others(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public", viewer=False)

    served = location(nginx_lines.lines(rig.name, rig.site, ["retired"]))

    for name in ("pages-1.xml", "pages-12.xml.gz", "sitemap.xml", "sitemap-2.xml", "retired-1.xml"):
        assert served.fullmatch(f"/{name}"), name
    for name in (
        "robots.txt", "atom.xml", "rss.xml", "sitemap.html", "blog-2.xml", "humans-8.txt",
        f"{KEY}.txt", ".sitemapd", "x/pages-1.xml", "pages-1.xml.bak", "sitemapxxml",
    ):  # fmt: skip
        assert not served.fullmatch(f"/{name}"), name


def test_a_site_below_a_directory_serves_its_names_there_and_no_robots_txt(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public", base_url=f"{BASE}a.b/shop/", robots="create")

    text = nginx_lines.lines(rig.name, rig.site)

    assert location(text).fullmatch("/a.b/shop/pages-1.xml")
    assert not location(text).fullmatch("/aXb/shop/pages-1.xml")
    assert not location(text).fullmatch("/a.b/shop/robots.txt")
    assert "rewrite" in text


@pytest.mark.parametrize("found", [[".sitemapd-0123456789abcdef", ".sitemapd"]])
def test_our_own_notes_can_be_written_and_are_served_to_nobody(found: list[str]) -> None:
    assert all(map(filenames.possible, found))
    shown = [kind.pattern for kind in filenames.KINDS if kind.served]
    assert not any(re.fullmatch(pattern, name) for pattern in shown for name in found)


def test_sitemaps_of_the_sections_are_told_from_other_files() -> None:
    names = [
        "sitemap.xml", "sitemap-3.xml", "pages-1.xml.gz", "posts-2025-11.xml", "posts-de-2.txt",
        "blog-1.xml", "post-sitemap.xml", "sitemap-index.xml", "pages.xml", "robots.txt",
    ]  # fmt: skip

    found = filenames.sitemaps(names, {"pages", "posts"})

    assert found == sorted(names[:5])
