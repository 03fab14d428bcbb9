"""Imports of tables, and of an index on disk, up to the published files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from tests.integration import independent_extensions as extensions
from tests.integration.independent import Published
from tests.integration.pipeline import Pipeline
from worker.reconcile.importer import Remark

ORIGIN = "https://www.example.com"


@pytest.fixture
def site(store: redis.Redis, tmp_path: Path) -> Pipeline:
    sections: dict[str, dict[str, object]] = {"posts": {}, "news": {}}
    return Pipeline(store, tmp_path / "public", ORIGIN, sections=sections)


def reported(said: list[Remark]) -> set[tuple[str, str, str]]:
    return {(each.kind, each.where, each.rule) for each in said}


def test_a_lastmod_in_the_future_is_left_out_and_noted(site: Pipeline, tmp_path: Path) -> None:
    path = tmp_path / "pages.csv"
    path.write_text(f"loc,lastmod\n{ORIGIN}/a,2999-12-31\n{ORIGIN}/b,2999-12-31T00:00:00Z\n")

    _, said = site.bring(f"csv:{path}")

    assert {f"{ORIGIN}/a": None, f"{ORIGIN}/b": None} == {
        loc: page.lastmod for loc, page in Published(site.root, ORIGIN).all().items()
    }
    assert {("noted", f"pages.csv#{n}", "M5") for n in (1, 2)} == reported(said)


ROWS = [
    {"loc": f"{ORIGIN}/p/1", "id": "1", "section": "posts", "version": "2026-05-01T00:00:00Z"},
    {"loc": f"{ORIGIN}/p/2", "id": "2", "section": "posts", "version": "1700000000000"},
    {"loc": f"{ORIGIN}/n/3", "id": "3", "section": "news", "version": ""},
    {"loc": f"{ORIGIN}/plain", "id": "", "section": "", "version": ""},
    {"loc": f"{ORIGIN}/wrong", "id": "5", "section": "shop", "version": ""},
    {"loc": f"{ORIGIN}/wronger", "id": "6", "section": "", "version": "yesterday"},
]


def csv_of(path: Path) -> str:
    names = list(ROWS[0])
    rows = [names, *([row[name] for name in names] for row in ROWS)]
    path.write_text("".join(";".join(row) + "\r\n" for row in rows))
    return f"csv:{path}"


def ndjson_of(path: Path) -> str:
    path.write_text("".join(json.dumps({k: v or None for k, v in r.items()}) + "\n" for r in ROWS))
    return f"ndjson:{path}"


@pytest.mark.parametrize("write", [csv_of, ndjson_of])
def test_a_table_says_where_pages_go_who_owns_them_and_how_old_the_row_is(
    site: Pipeline, tmp_path: Path, write: Callable[[Path], str]
) -> None:
    source = write(tmp_path / "table")
    site.send([{"type": "delete", "id": "2", "loc": f"{ORIGIN}/p/2", "version": 1_700_000_000_001}])

    _, said = site.bring(source)

    published = Published(site.root, ORIGIN)
    assert {
        f"{ORIGIN}/posts-1.xml": [f"{ORIGIN}/p/1"],
        f"{ORIGIN}/news-1.xml": [f"{ORIGIN}/n/3"],
        f"{ORIGIN}/pages-1.xml": [f"{ORIGIN}/plain"],
    } == {url: [page.loc for page in pages] for url, pages in published.pages.items()}
    assert {("refused", "table#5", "section"), ("refused", "table#6", "M1")} == reported(said)


def test_a_page_from_a_table_can_be_deleted_by_its_id(site: Pipeline, tmp_path: Path) -> None:
    site.bring(csv_of(tmp_path / "table"))

    site.send([{"type": "delete", "id": "1"}])

    assert f"{ORIGIN}/p/1" not in Published(site.root, ORIGIN).all()


def test_an_index_on_disk_brings_its_compressed_and_plain_text_files(
    site: Pipeline, tmp_path: Path
) -> None:
    names = ("maps/a.xml", "maps/b.xml.gz", "maps/c.txt", "maps/missing.xml")
    (tmp_path / "maps").mkdir()
    head = '<{} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    for name in names[:2]:
        text = f"{head.format('urlset')}<url><loc>{ORIGIN}/{name}</loc></url></urlset>"
        # The index names a.xml, the disk has it compressed: files are known by their content.
        path = tmp_path / (name if name.endswith(".gz") else f"{name}.gz")
        path.write_bytes(gzip.compress(text.encode()))
    (tmp_path / "maps/c.txt").write_text(f"{ORIGIN}/c/1\n{ORIGIN}/c/2\n")
    listed = "".join(f"<sitemap><loc>{ORIGIN}/{name}</loc></sitemap>" for name in names)
    (tmp_path / "index.xml").write_text(f"{head.format('sitemapindex')}{listed}</sitemapindex>")

    progress, said = site.bring(f"sitemap:{tmp_path / 'index.xml'}")

    expected = {f"{ORIGIN}/{path}" for path in ("maps/a.xml", "maps/b.xml.gz", "c/1", "c/2")}
    assert expected == Published(site.root, ORIGIN).all().keys()
    assert {("refused", "index.xml#4", "N4")} == reported(said)
    assert progress.refused == 1


def test_an_ndjson_line_brings_its_group_its_languages_and_its_images(
    site: Pipeline, tmp_path: Path
) -> None:
    """PROTOCOL H2, I1: all that an event may have."""
    image = {"loc": f"{ORIGIN}/i.png"}
    rows = [
        {"loc": f"{ORIGIN}/en", "group": 7, "lang": ["en", "x-default"], "images": [image]},
        {"loc": f"{ORIGIN}/de", "group": "7", "lang": "de", "title": "T" * 501},
        {"loc": f"{ORIGIN}/fr", "group": "7"},
    ]
    path = tmp_path / "pages.ndjson"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    progress, said = site.bring(f"ndjson:{path}")

    pages, _ = extensions.published(Published(site.root, ORIGIN))
    links = (("de", f"{ORIGIN}/de"), ("en", f"{ORIGIN}/en"), ("x-default", f"{ORIGIN}/en"))
    assert {loc.removeprefix(ORIGIN): of.links for loc, of in pages.items()} == {
        "/en": links, "/de": links,
    }  # fmt: skip
    assert pages[f"{ORIGIN}/en"].images == ((("/loc", image["loc"]),),)
    assert (progress.sent, progress.refused) == (2, 1)
    assert [(each.where, each.detail.partition(":")[0]) for each in said] == [
        ("pages.ndjson#2", "title left out"), ("pages.ndjson#3", "lang"),
    ]  # fmt: skip
