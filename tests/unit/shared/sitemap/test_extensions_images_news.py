"""Images and news of a page, at the exact boundaries of their rules (PROTOCOL 1.8, 1.10)."""

from __future__ import annotations

from typing import Any

import pytest

from shared.sitemap.extensions import images, news
from shared.sitemap.extensions.report import ValueReport
from tests.unit.extensions import IMAGE, NEWS


def take(article: Any, *, deprecated: bool = False) -> tuple[Any, ValueReport]:
    report = ValueReport()
    return news.take(article, report, deprecated=deprecated), report


def faults(article: Any) -> list[tuple[str, str]]:
    return [(field, rule) for field, rule, _ in take(article)[1].faults]


def with_publication(**members: Any) -> dict[str, Any]:
    return {**NEWS, "publication": {**NEWS["publication"], **members}}


def test_1000_images_are_the_most() -> None:
    """PROTOCOL I1."""
    report = ValueReport()
    assert len(images.take([IMAGE] * 1_000, report, deprecated=False)) == 1_000
    assert report.faults == []

    images.take([IMAGE] * 1_001, report, deprecated=False)
    ((field, rule, _),) = report.faults
    assert (field, rule) == ("images", "PROTOCOL I1")


@pytest.mark.parametrize("image", [{}, {"loc": None}, {"loc": "/a.jpg"}, {"loc": ["a"]}])
def test_an_image_has_exactly_one_absolute_address(image: dict[str, Any]) -> None:
    """PROTOCOL I1."""
    report = ValueReport()
    images.take([image], report, deprecated=False)

    assert [field for field, _, _ in report.faults] == ["images[0].loc"]


def test_an_image_may_be_on_any_host_and_is_listed_in_canonical_form() -> None:
    """PROTOCOL I3."""
    given = [{"loc": "HTTPS://B\u00fccher.example:443/\u00e9 b.jpg#top"}]
    (image,) = images.take(given, ValueReport(), deprecated=False)

    assert image == {"loc": "https://xn--bcher-kva.example/%C3%A9%20b.jpg"}
    assert images.render((image,)) == (
        "<image:image><image:loc>https://xn--bcher-kva.example/%C3%A9%20b.jpg</image:loc>"
        "</image:image>"
    )


OLD_IMAGE = {"caption": "C", "geo_location": "Berlin", "title": "T", "license": "https://a.b/l"}


@pytest.mark.parametrize("name", OLD_IMAGE)
def test_deprecated_tags_of_images_are_named_and_left_out_unless_wanted(name: str) -> None:
    """PROTOCOL I2."""
    given = {**IMAGE, name: OLD_IMAGE[name]}
    report = ValueReport()

    assert images.take([given], report, deprecated=False) == (IMAGE,)
    ((field, rule, detail),) = report.warnings
    assert (field, rule) == (f"images[0].{name}", "PROTOCOL I2")
    assert name in detail
    assert images.take([given], report, deprecated=True) == (given,)


@pytest.mark.parametrize("name", ["publication", "publication_date", "title"])
def test_an_article_needs_its_publication_date_and_title(name: str) -> None:
    """PROTOCOL W1."""
    assert [field for field, _ in faults({**NEWS, name: None})] == [f"news.{name}"]


@pytest.mark.parametrize("name", ["name", "language"])
def test_a_publication_needs_its_name_and_language(name: str) -> None:
    """PROTOCOL W1."""
    found = faults(with_publication(**{name: None}))

    assert [field for field, _ in found] == [f"news.publication.{name}"]


def test_an_article_is_rendered_in_the_order_of_the_schema() -> None:
    """PROTOCOL W2."""
    article, _ = take(dict(reversed({**NEWS, "access": "Subscription"}.items())), deprecated=True)

    assert news.render(article) == (
        "<news:news><news:publication><news:name>The Example Times</news:name>"
        "<news:language>en</news:language></news:publication>"
        "<news:access>Subscription</news:access>"
        "<news:publication_date>2026-11-21T10:00:00Z</news:publication_date>"
        "<news:title>Something happened</news:title></news:news>"
    )


@pytest.mark.parametrize(
    ("code", "canonical"),
    [("en", "en"), ("EN", "en"), ("fil", "fil"), ("ger", "ger"), ("zh-cn", "zh-cn"),
     ("ZH-TW", "zh-tw")],
)  # fmt: skip
def test_a_language_of_news_has_two_or_three_letters(code: str, canonical: str) -> None:
    """PROTOCOL W6."""
    article, report = take(with_publication(language=code))

    assert (article["publication"]["language"], report.faults) == (canonical, [])


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("en-US", "write the language alone: en"),
        ("en_GB", "write the language alone: en"),
        ("zh-hk", "zh-cn for simplified"),
        ("zh-Hant", "zh-cn for simplified"),
        ("gr", "write el"),
        ("xx", "two or three letters"),
        ("english", "two or three letters"),
        ("", "two or three letters"),
    ],
)
def test_a_language_of_news_that_is_none_is_refused_with_a_remedy(code: str, remedy: str) -> None:
    """PROTOCOL W6."""
    _, report = take(with_publication(language=code))

    ((field, rule, detail),) = report.faults
    assert (field, rule) == ("news.publication.language", "PROTOCOL W6")
    assert remedy in detail


@pytest.mark.parametrize(
    ("article", "field"),
    [
        (with_publication(name="The Example Times (subscription)"), "news.publication.name"),
        ({**NEWS, "title": "Something happened - The Example Times"}, "news.title"),
        ({**NEWS, "title": "Something happened | The Example Times"}, "news.title"),
    ],
)
def test_names_and_titles_that_google_wants_otherwise_are_warned_about(
    article: dict[str, Any], field: str
) -> None:
    """PROTOCOL W7."""
    found, report = take(article)

    assert found
    assert [(said[0], said[1]) for said in report.warnings] == [(field, "PROTOCOL W7")]


@pytest.mark.parametrize("title", ["We read The Example Times", "The Example Times", "A (b)"])
def test_titles_that_only_speak_of_the_publication_are_not(title: str) -> None:
    """PROTOCOL W7."""
    assert take({**NEWS, "title": title})[1].warnings == []


@pytest.mark.parametrize(
    ("date", "published", "ms"),
    [
        ("2026-11-21", "2026-11-21", 1_795_219_200_000),
        ("2026-11-21T10:20Z", "2026-11-21T10:20:00Z", 1_795_256_400_000),
        ("2026-11-21T11:20:30+01:00", "2026-11-21T10:20:30Z", 1_795_256_430_000),
        ("2026-11-21T10:20:30.999Z", "2026-11-21T10:20:30Z", 1_795_256_430_000),
    ],
)
def test_a_publication_date_is_a_day_or_a_moment(date: str, published: str, ms: int) -> None:
    """PROTOCOL W8; W4 counts from it, a date alone from its midnight UTC."""
    article, report = take({**NEWS, "publication_date": date})

    assert report.faults == []
    assert article["publication_date"] == published
    assert news.published_ms(article) == ms
    assert news.WINDOW_MS == 172_800_000


@pytest.mark.parametrize("date", ["2026", "2026-11", "2026-11-21 10:20", "1969-12-31", "", 7])
def test_what_is_no_publication_date_is_refused(date: object) -> None:
    """PROTOCOL W8."""
    assert [field for field, _ in faults({**NEWS, "publication_date": date})] == [
        "news.publication_date"
    ]


LEGACY = {
    "access": ("registration", "Registration"),
    "genres": (["blog", "Satire", "Blog"], "Blog, Satire"),
    "keywords": ("a,  b", "a, b"),
    "stock_tickers": ("NASDAQ:AMAT,BOM:500325", "NASDAQ:AMAT, BOM:500325"),
}


@pytest.mark.parametrize("name", LEGACY)
def test_legacy_tags_of_news_are_named_and_left_out_unless_wanted(name: str) -> None:
    """PROTOCOL W9."""
    given, canonical = LEGACY[name]
    without, report = take({**NEWS, name: given})
    kept, _ = take({**NEWS, name: given}, deprecated=True)

    ((field, rule, detail),) = report.warnings
    assert (field, rule) == (f"news.{name}", "PROTOCOL W9")
    assert name in detail
    assert without == NEWS
    assert kept == {**NEWS, name: canonical}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("access", "free"),
        ("genres", ["Gossip"]),
        ("genres", []),
        ("stock_tickers", "AMAT"),
        ("stock_tickers", [f"A:B{n}" for n in range(6)]),
    ],
)
def test_legacy_tags_are_checked_all_the_same(name: str, value: object) -> None:
    """PROTOCOL W9."""
    assert faults({**NEWS, name: value}) == [(f"news.{name}", "PROTOCOL W9")]
    assert take({**NEWS, "stock_tickers": [f"A:B{n}" for n in range(5)]})[1].faults == []


@pytest.mark.parametrize("name", ["amp", "geo_targeting", "geo_locations"])
@pytest.mark.parametrize("deprecated", [False, True])
def test_tags_that_no_schema_knows_are_named_and_never_published(
    name: str, *, deprecated: bool
) -> None:
    """PROTOCOL W9."""
    article, report = take({**NEWS, name: "x"}, deprecated=deprecated)

    assert article == NEWS
    assert [name in detail for _, _, detail in report.warnings] == [True]


def test_characters_that_no_xml_can_hold_are_taken_out_with_a_warning() -> None:
    """PROTOCOL F4."""
    article, report = take({**NEWS, "title": " a\x00\ud800b\r\n\tc\ufffe "})

    assert article["title"] == "ab c"
    assert [(field, rule) for field, rule, _ in report.warnings] == [("news.title", "PROTOCOL F4")]
    assert faults({**NEWS, "title": "\x00 \ufffe"}) == [("news.title", "PROTOCOL W1")]
