"""Which section lists a page."""

from __future__ import annotations

from typing import Any

import pytest

from shared.domain.routing import Family, Routing, family_of
from shared.events.event import Event

LOC = "https://www.example.com/blog/a"
ARRIVED = 1_795_256_400_000
"""2026-11-21T10:20:00Z in milliseconds."""

SITE = Routing(
    {
        "posts": Family(split="month", paths=("/blog/*",)),
        "shop": Family(split="language", paths=("/shop/*", "/sale")),
        "german": Family(languages=("de", "de-at")),
        "news": Family(news=True),
        "news-fr": Family(news=True, languages=("fr",)),
    }
)


def section(loc: str = LOC, here: str | None = None, **members: Any) -> str:
    return SITE.section(Event("upsert", loc, **members), loc, here, ARRIVED)


def at(path: str, **members: Any) -> str:
    return section(f"https://www.example.com{path}", **members)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/blog/a", "posts-2026-11"),
        ("/blog/a/b?c=/shop/", "posts-2026-11"),
        ("/blogs", "pages"),
        ("/en/blog/a", "pages"),
        ("/shop/x", "shop"),
        ("/sale", "shop"),
        ("/sale/x", "pages"),
        ("/", "pages"),
    ],
)
def test_a_page_goes_to_the_first_section_that_claims_its_path(path: str, found: str) -> None:
    """PROTOCOL N5."""
    assert at(path) == found


def test_what_the_sender_names_comes_first_then_where_the_page_is_then_the_rules() -> None:
    assert section(section="german", here="pages") == "german"
    assert section(here="pages") == "pages"
    assert section(here="german") == "german"
    assert section() == "posts-2026-11"


@pytest.mark.parametrize(
    ("members", "month"),
    [
        ({"published": "2025-01-31T23:00:00Z", "lastmod": "2026-02-01"}, "2025-01"),
        ({"lastmod": "2025-12-31"}, "2025-12"),
        ({}, "2026-11"),
        ({"published": "9999-12-31"}, "2026-11"),
        ({"published": "0001-01-01"}, "1990-01"),
    ],
)
def test_a_month_is_that_of_publication_else_of_lastmod_else_of_arrival(
    members: dict[str, Any], month: str
) -> None:
    """PROTOCOL F16; the future and the time before the web open no files."""
    assert section(**members) == f"posts-{month}"


def test_a_page_stays_in_its_month_until_its_sender_says_otherwise() -> None:
    assert section(here="posts-2024-03", lastmod="2026-11-20") == "posts-2024-03"
    assert section(here="posts-2024-03", published="2024-04-01") == "posts-2024-04"


@pytest.mark.parametrize(
    ("lang", "found"),
    [(("de",), "shop-de"), (("x-default", "en"), "shop-en"), (("zh-Hant",), "shop-zh-hant"),
     (("x-default",), "shop"), ((), "shop")],
)  # fmt: skip
def test_a_section_is_split_by_language(lang: tuple[str, ...], found: str) -> None:
    assert at("/shop/a", lang=lang) == found


def test_a_page_goes_to_the_section_of_its_language() -> None:
    assert at("/x", lang=("de-AT",)) == "german"
    assert at("/x", lang=("fr",)) == "pages"


def article(language: str, **members: Any) -> Event:
    news = {"publication": {"name": "n", "language": language}}
    return Event("upsert", LOC, news=news, **members)


def test_news_goes_to_the_section_it_names_then_to_that_of_its_language() -> None:
    assert SITE.news_section(article("fr")) == "news-fr"
    assert SITE.news_section(article("en")) == "news"
    assert SITE.news_section(article("fr", section="news")) == "news"
    assert SITE.news_section(article("en", section="posts")) == "news"
    assert Routing({}).news_section(article("en")) is None


def test_an_article_sent_to_the_news_has_its_page_where_the_rules_say() -> None:
    assert SITE.section(article("en", section="news"), LOC, None, ARRIVED) == "posts-2026-11"
    assert SITE.section(article("en", section="news"), LOC, "german", ARRIVED) == "german"


@pytest.mark.parametrize(
    ("name", "family"),
    [("posts", "posts"), ("posts-2025-11", "posts"), ("posts-archive-de", "posts-archive"),
     ("gone-2025-11", "gone-2025-11")],
)  # fmt: skip
def test_a_part_belongs_to_the_longest_family_that_begins_its_name(name: str, family: str) -> None:
    assert family_of(name, {"posts", "posts-archive"}) == family
