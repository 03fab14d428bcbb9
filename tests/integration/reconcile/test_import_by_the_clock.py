"""An import says what the clock leaves out of the pages that it brings."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.integration import independent_extensions as extensions
from tests.integration.independent import Published
from tests.integration.pipeline import Pipeline
from tests.unit.extensions import NAMESPACES

ORIGIN = "https://www.example.com"
NOW = 1_795_256_400_000
"""2026-11-21T10:20:00Z in milliseconds."""

VIDEO = (
    "<video:video><video:thumbnail_loc>https://c.example/t</video:thumbnail_loc>"
    "<video:title>{0}</video:title><video:description>D</video:description>"
    "<video:content_loc>https://c.example/v</video:content_loc>"
    "<video:expiration_date>{0}</video:expiration_date></video:video>"
)
NEWS = (
    "<news:news><news:publication><news:name>N</news:name><news:language>en</news:language>"
    "</news:publication><news:publication_date>{}</news:publication_date>"
    "<news:title>T</news:title></news:news>"
)


@pytest.fixture
def site(store: redis.Redis, tmp_path: Path) -> Pipeline:
    return Pipeline(
        store, tmp_path / "public", ORIGIN, lambda: NOW, sections={"news": {"news": True}}
    )


def bring(site: Pipeline, *pages: str) -> list[tuple[str, str, str]]:
    """Import pages that these elements extend: the place, rule and detail of what is noted."""
    urls = "".join(f"<url><loc>{ORIGIN}/{n}</loc>{page}</url>" for n, page in enumerate(pages, 1))
    root = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" {NAMESPACES}>'
    path = site.root.parent / "s.xml"
    path.write_text(f"{root}{urls}</urlset>")
    progress, said = site.bring(f"sitemap:{path}")
    assert progress.sent == len(pages) == len(Published(site.root, ORIGIN).all())
    return [(each.where, each.rule, each.detail) for each in said]


def test_a_video_that_has_expired_is_named_and_the_others_come(site: Pipeline) -> None:
    """PROTOCOL V6: at its moment, or after its day."""
    dates = ["2026-11-21T10:20:00Z", "2026-11-21T10:20:01Z", "2026-11-20", "2026-11-21"]

    said = bring(site, "".join(map(VIDEO.format, dates)), VIDEO.format(dates[1]))

    assert said == [("s.xml#1", "V6", "videos left out: 2 expired")]
    pages, _ = extensions.published(Published(site.root, ORIGIN))
    shown = [dict(video)["/expiration_date"] for video in pages[f"{ORIGIN}/1"].videos]
    assert shown == [dates[1], dates[3]]


def test_news_out_of_its_time_is_named_and_its_page_comes(site: Pipeline) -> None:
    """PROTOCOL W4: 48 hours are over on the minute."""
    dates = ["2026-11-19T10:20:00Z", "2026-11-19T10:20:01Z", "2026-11-22", "2026-11-23"]

    said = bring(site, *map(NEWS.format, dates))

    _, news = extensions.published(Published(site.root, ORIGIN))
    assert set(news) == {f"{ORIGIN}/2", f"{ORIGIN}/3"}
    assert said[1][2] == "news is listed from 2026-11-23 on"
    assert [(where, rule) for where, rule, _ in said] == [("s.xml#1", "W4"), ("s.xml#4", "W4")]
    assert said[0][2].startswith("news left out: 2026-11-19T10:20:00Z does not lie")


def test_a_site_without_a_section_for_news_is_told_so_and_lists_the_page(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL W11."""
    site = Pipeline(store, tmp_path / "public", ORIGIN, lambda: NOW)

    said = bring(site, NEWS.format("2026-11-21"), "")

    assert [(where, rule) for where, rule, _ in said] == [("s.xml#1", "W11")]
