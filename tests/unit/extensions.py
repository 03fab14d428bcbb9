"""Extensions to draw from: JSON as senders write it, and entries with its canonical values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from lxml import etree

from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.sitemap.extensions import alternates, images, news, videos
from shared.sitemap.extensions.report import ValueReport
from tests.corpus import CORPUS
from tests.unit.strategies import alternate_sets, entries, lastmods

LOC = "https://www.example.com/a"
IMAGE = {"loc": "https://cdn.example.net/1.jpg"}
VIDEO = {
    "thumbnail_loc": "https://cdn.example.net/t.jpg", "title": "A title",
    "description": "What it shows", "content_loc": "https://cdn.example.net/v.mp4",
}  # fmt: skip
NEWS = {
    "publication": {"name": "The Example Times", "language": "en"},
    "publication_date": "2026-11-21T10:00:00Z", "title": "Something happened",
}  # fmt: skip
NAMESPACES = " ".join(
    f'xmlns:{module.PREFIX}="{module.NAMESPACE}"' for module in (alternates, images, videos, news)
)

texts = st.text(max_size=40) | st.sampled_from(
    [
        "&<>\"'",
        "]]>",
        "</url>\n",
        "<url><loc>",
        "\x00a",
        "a\ud800b",
        "\ufffe",
        "a\r\n\tb",
        "x",
    ]
)
hosts = st.sampled_from(["www.example.com", "cdn.example.net", "b\u00fccher.example", "a.b:8443"])
paths = st.text(st.characters(min_codepoint=33, exclude_categories=["Cs", "Cc"]), max_size=12).map(
    lambda text: text.replace("\\", "").replace("%", "%25").replace("/.", "/").replace(".", "-")
)
links = st.builds("https://{}/{}".format, hosts, paths)
dates = lastmods
flags = st.sampled_from([True, False, "yes", "No", "YES"])


def some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


image_values = some(
    {"loc": links},
    dict.fromkeys(["caption", "geo_location", "title"], texts) | {"license": links},
)
relationships = st.sampled_from(["allow", "deny"])
countries = st.lists(st.sampled_from(["DE", "at", "GB", "us", "FR"]), min_size=1)
video_values = some(
    {"thumbnail_loc": links, "title": texts, "description": texts, "content_loc": links},
    {
        "player_loc": links
        | some({"loc": links}, {"allow_embed": flags, "autoplay": texts}),
        "duration": st.integers(1, 28_800) | st.integers(1, 28_800).map(str),
        "expiration_date": dates,
        "rating": st.floats(0, 5) | st.integers(0, 5) | st.just("4.50"),
        "content_segment_loc": st.lists(
            links | some({"loc": links}, {"duration": st.integers(1, 28_800)}), max_size=3
        ),
        "view_count": st.integers(0, 10**18 - 1),
        "publication_date": dates,
        "tags": st.lists(texts, max_size=4),
        "category": texts,
        "family_friendly": flags,
        "restriction": some({"relationship": relationships, "countries": countries}, {}),
        "gallery_loc": links | some({"loc": links}, {"title": texts}),
        "price": st.lists(
            some(
                {"value": st.floats(0, 1e6) | st.integers(0, 99), "currency": st.just("eur")},
                {"type": st.sampled_from(["RENT", "purchase"]), "resolution": st.just("hd")},
            )
            | some({"type": st.just("rent")}, {}),
            max_size=2,
        ),
        "requires_subscription": flags,
        "uploader": texts | some({"name": texts}, {"info": st.just("https://example.com/who")}),
        "tvshow": some(
            {"show_title": texts, "video_type": st.sampled_from(["full", "Clip"])},
            {
                "episode_title": texts, "season_number": st.integers(1, 9),
                "episode_number": st.integers(1, 99), "premier_date": dates,
            },
        ),
        "platform": some(
            {"relationship": relationships, "platforms": st.sampled_from(["web tv", ["mobile"]])},
            {},
        ),
        "live": flags,
        "id": st.lists(some({"value": texts, "type": st.just("tms:series")}, {}), max_size=2),
    },
)  # fmt: skip
news_values = some(
    {
        "publication": some(
            {"name": texts, "language": st.sampled_from(["en", "DE", "zh-cn", "fil"])}, {}
        ),
        "publication_date": dates,
        "title": texts,
    },
    {
        "access": st.sampled_from(["Subscription", "registration"]),
        "genres": st.sampled_from([["blog", "Satire"], "OpEd, Opinion"]),
        "keywords": texts,
        "stock_tickers": st.sampled_from([["NASDAQ:AMAT", "BOM:500325"], "nasdaq:amat"]),
        "amp": texts,
        "geo_targeting": texts,
    },
)


def sound(value: Any, report: ValueReport) -> Any:
    """`value`, None where it has faults."""
    return None if report.faults else value


def _images(value: list[Any]) -> Any:
    report = ValueReport()
    return sound(images.take(value, report, deprecated=True), report)


def _videos(value: list[Any]) -> Any:
    report = ValueReport()
    return sound(videos.take(value, report, loc=None, deprecated=True), report)


def _news(value: dict[str, Any]) -> Any:
    report = ValueReport()
    return sound(news.take(value, report, deprecated=True), report)


full_entries: st.SearchStrategy[Entry] = st.builds(
    replace,
    entries,
    alternates=alternate_sets,
    images=st.lists(image_values, max_size=3).map(_images).filter(lambda v: v is not None),
    videos=st.lists(video_values, max_size=2).map(_videos).filter(lambda v: v is not None),
    news=st.none() | news_values.map(_news),
)


def document(*listed: Entry) -> bytes:
    """A whole file with these entries and all namespaces."""
    root = f'<urlset xmlns="{fragments.NAMESPACE}" {NAMESPACES}>\n'
    return root.encode() + b"".join(map(fragments.render, listed)) + b"</urlset>"


def official() -> etree.XMLSchema:
    """The schemas of sitemaps.org and Google in one; read them only where the corpus is."""
    return etree.XMLSchema(etree.parse(CORPUS / "xsd" / "all.xsd"))
