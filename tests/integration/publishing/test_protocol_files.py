"""What the rules of the protocol say of files, held against files that were really published."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import etree

from shared.sitemap import fragments, shards, w3c_dates
from tests.integration.ingest.test_expiry import HOUR, NOW, Newsroom, article
from tests.integration.rig import BASE, NS, SCHEMA, Rig
from tests.integration.store.test_groups import CODES

PREFIXES = {
    "xhtml": "http://www.w3.org/1999/xhtml",
    "image": "http://www.google.com/schemas/sitemap-image/1.1",
    "video": "http://www.google.com/schemas/sitemap-video/1.1",
    "news": "http://www.google.com/schemas/sitemap-news/0.9",
}
HOSTILE = "&<>\"' ]]> \u202e \U0001f600 <!--"
IMAGES = [{"loc": f"https://cdn.example.net/{n}.jpg?a&b", "title": HOSTILE} for n in range(3)]
VIDEO = {
    "thumbnail_loc": "https://cdn.example.net/t.jpg", "title": HOSTILE, "description": HOSTILE,
    "content_loc": "ftp://cdn.example.net/v.mp4", "player_loc": "https://cdn.example.net/p?v=1",
    "duration": 28_800, "expiration_date": w3c_dates.from_epoch_s((NOW + 99 * HOUR) // 1000),
    "rating": 4.5, "view_count": 0, "publication_date": "2026-11-21T10:20+01:00",
    "tags": [HOSTILE, "b"], "family_friendly": False,
    "restriction": {"relationship": "deny", "countries": ["DE", "AT"]},
    "requires_subscription": True, "live": False,
    "uploader": {"name": HOSTILE, "info": f"{BASE}who"},
    "platform": {"relationship": "allow", "platforms": ["web", "tv"]},
    "price": [{"value": 1, "currency": "EUR"}], "category": "C", "gallery_loc": f"{BASE}gallery",
    "tvshow": {"show_title": "S", "video_type": "clip"}, "id": [{"value": "1", "type": "url"}],
    "content_segment_loc": ["https://cdn.example.net/s.mp4"],
}  # fmt: skip
LANDS = [
    "AR", "BO", "CL", "CO", "CR", "CU", "DO", "EC", "ES", "GT", "HN", "MX", "NI", "PA", "PE", "PR",
    "PY", "SV", "UY", "VE",
]  # fmt: skip
STAMP = b"<lastmod>2026-01-01T00:00:00Z</lastmod>"
LEGACY = {"access": "Subscription", "genres": ["Blog"], "keywords": "k", "stock_tickers": ["A:B"]}


def everything() -> Iterator[dict[str, Any]]:
    """Twelve pages: each extension alone, all of them together, and pages without any."""
    for n in range(12):
        page: dict[str, Any] = {
            "type": "upsert", "loc": f"{n}?a=1&b='2'", "section": "posts", "changefreq": "daily",
            "priority": 0.7, "lastmod": "2026-11-20T08:00:00+02:00",
        }  # fmt: skip
        if n % 6 in {0, 1}:
            page |= {"images": IMAGES}
        if n % 6 in {0, 2}:
            page |= {"videos": [VIDEO, VIDEO | {"content_loc": None}]}
        if n % 6 in {0, 3}:
            page |= {"group": "g", "lang": [["en", "x-default"], "de", "fr", "it"][n // 3]}
        if n % 6 in {0, 4}:
            page |= {"news": article("a")["news"] | LEGACY}
        yield page


def newsroom(store: redis.Redis, root: Path, **options: Any) -> Newsroom:
    sections = {"posts": {}, "news": {"news": True}}
    return Newsroom(store, root, sections=sections, robots="create", hints=True, **options)


@pytest.mark.parametrize("form", ["xml", "xml.gz", "encoded"])
@pytest.mark.parametrize("emit_deprecated", [False, True])
def test_files_with_every_extension_satisfy_the_official_schemas(
    store: redis.Redis, tmp_path: Path, corpus: Path, form: str, *, emit_deprecated: bool
) -> None:
    """PROTOCOL F5, F6, I1, V2, V9, W2, C0: `strict` in these schemas looks into each extension."""
    rig = newsroom(
        store, tmp_path / "public", form=form, shard_urls=5, emit_deprecated=emit_deprecated
    )
    pages, indexes = (
        etree.XMLSchema(file=str(corpus / "xsd" / name)) for name in ("all.xsd", "siteindex.xsd")
    )

    rig.do(*everything())

    contents = rig.shard_files()
    assert set(contents) == {"posts-1", "posts-2", "posts-3", "news-1"}
    for content in contents.values():
        pages.assertValid(etree.fromstring(content))
    indexes.assertValid(etree.fromstring(rig.files()["sitemap.xml"].content))
    found = b"".join(contents.values())
    assert all(f"<{prefix}:".encode() in found for prefix in PREFIXES)
    assert (b"<video:price" in found) == (b"<news:keywords" in found) == emit_deprecated
    assert not list(rig.audit().verify())


@pytest.mark.parametrize("form", ["xml", "xml.gz", "encoded"])
def test_files_with_every_extension_satisfy_our_schemas(
    store: redis.Redis, tmp_path: Path, form: str
) -> None:
    """PROTOCOL F2, F13, N1, N4: each file that the index names, and nothing that is not named."""
    rig = newsroom(store, tmp_path / "public", form=form, shard_urls=5)

    rig.do(*everything())

    rig.check()


@pytest.mark.parametrize("form", shards.FORMS)
def test_every_file_is_utf_8_from_its_first_byte_and_holds_no_declaration_but_its_own(
    store: redis.Redis, tmp_path: Path, form: str
) -> None:
    """PROTOCOL F3: no byte order mark, no white space before, no DOCTYPE, no ENTITY."""
    news = {} if form in shards.TEXT_FORMS else {"news": {"news": True}}
    rig = Newsroom(store, tmp_path / "public", form=form, sections={"posts": {}, **news})
    items = [item if news else {**item, "news": None} for item in everything()]

    rig.do(*items)

    contents = rig.shard_files() | {n: rig.files()[n].content for n in rig.index()}
    for name, content in contents.items():
        text = content.decode("utf-8")
        start = (
            BASE
            if form in shards.TEXT_FORMS and name.startswith("posts")
            else '<?xml version="1.0" enc'
        )
        assert text.startswith(start), name
        assert "<!DOCTYPE" not in text
        assert "<!ENTITY" not in text
        assert text.count("<?xml ") <= 1


def test_fifty_languages_fill_a_file_by_bytes_long_before_it_is_full_of_urls(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL F7: alternates are no URLs of the file, and count as bytes all the same."""
    codes = [*CODES, *(f"es-{land}" for land in LANDS[:10])]
    links = [{"hreflang": c, "href": f"https://{c}.example.org/".ljust(110, "x")} for c in codes]
    rig = Rig(store, tmp_path, shard_bytes=500_000)

    rig.do(*({"type": "upsert", "loc": f"{n:03}", "alternates": links} for n in range(200)))

    sizes = {name: len(content) for name, content in rig.shard_files().items()}
    assert len(codes) == 50
    assert len(sizes) > 3
    assert max(sizes.values()) <= 500_000
    assert sum(content.count(b"<url>") for content in rig.shard_files().values()) == 200
    rig.check()


def test_a_group_that_grows_carries_no_file_over_its_bytes(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL F7, H3: who joins makes every member longer, and some move to other files."""
    rig = Rig(store, tmp_path, shard_bytes=16_384)

    for land in LANDS:
        told = {"group": "g", "lang": f"es-{land}"}
        rig.do({"type": "upsert", "loc": f"{land}/".ljust(150, "x"), **told})

    contents = rig.shard_files()
    assert len(contents) > 3
    assert max(map(len, contents.values())) <= 16_384
    links = sum(content.count(b"<xhtml:link ") for content in contents.values())
    assert links == len(LANDS) ** 2
    rig.check()


def test_the_50_000th_file_is_the_last_of_an_index(store: redis.Redis, tmp_path: Path) -> None:
    """PROTOCOL F8: files are numbered for ever, and these two are the 50,000th and the next."""
    rig = Rig(store, tmp_path, shard_urls=1, index_shards=shards.MAX_INDEX, robots="create")
    store.hset(rig.keys.counters, "shards", 49_999)

    rig.do({"type": "upsert", "loc": "a"}, {"type": "upsert", "loc": "b"})

    assert {name: list(lines) for name, lines in rig.index().items()} == {
        "sitemap.xml": [f"{BASE}pages-1.xml"], "sitemap-2.xml": [f"{BASE}pages-2.xml"],
    }  # fmt: skip
    rig.check()


def test_lastmod_is_what_the_sender_says_and_never_made_up(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL M2, M3, M4: not the time of the event, of a publish or of a rebuild."""
    rig = Rig(store, tmp_path)

    rig.do(
        {"type": "upsert", "loc": "a"},
        {"type": "upsert", "loc": "b", "lastmod": "2020-02-02"},
        {"type": "upsert", "loc": "c", "lastmod": "2020-02-02T02:02:02Z", "version": NOW},
    )
    rig.do({"type": "upsert", "loc": "c", "version": NOW + 1})
    rig.audit().rebuild()

    assert rig.listed() == {BASE + "a": None, BASE + "b": "2020-02-02", BASE + "c": None}


@pytest.mark.parametrize(
    "gone", [{"noindex": True}, {"canonical": f"{BASE}other"}, {"type": "delete"}]
)
def test_a_page_that_must_not_be_listed_any_more_leaves_its_file(
    store: redis.Redis, tmp_path: Path, gone: dict[str, Any]
) -> None:
    """PROTOCOL L8, L9: with its event, and it comes back with the next that says otherwise."""
    rig = Rig(store, tmp_path)
    rig.do({"type": "upsert", "loc": "a"}, {"type": "upsert", "loc": "b"})

    rig.do({"type": "upsert", "loc": "a", **gone})
    assert set(rig.listed()) == {BASE + "b"}
    rig.check()

    rig.do({"type": "upsert", "loc": "a", "canonical": f"{BASE}a#top"})
    assert set(rig.listed()) == {BASE + "a", BASE + "b"}


def test_a_page_is_listed_once_however_it_is_spelled_and_whatever_section_is_named(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL L10, across all files of the site."""
    rig = Rig(store, tmp_path, sections={"posts": {}}, shard_urls=1)
    spellings = ["\u00fc", "%c3%bc", "%C3%BC#top", "\u00fc#"]

    for n, loc in enumerate(spellings):
        rig.do({"type": "upsert", "loc": loc, "section": ["pages", "posts"][n % 2]})
        assert list(rig.listed()) == [f"{BASE}%C3%BC"]
        rig.check()


def test_addresses_that_servers_may_answer_differently_are_different_pages(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL L7: slash, letters, order and empty query are kept as they were sent."""
    locs = ["a", "a/", "A", "a?", "a?x=1&y=2", "a?y=2&x=1", "a//", "%41", "~a", "%7Ea"]
    rig = Rig(store, tmp_path)

    rig.do(*({"type": "upsert", "loc": loc} for loc in locs))

    assert set(rig.listed()) == {BASE + loc for loc in locs}


def test_news_are_listed_without_hints_and_with_the_images_of_their_page(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL M8, W11: changefreq and priority say nothing of an article."""
    rig = newsroom(store, tmp_path / "public")

    rig.do(article("a", images=IMAGES[:1], changefreq="hourly", priority="1.0"))

    assert b"<priority>1.0</priority>" in rig.shard_files()["posts-1"]
    (url,) = etree.fromstring(rig.shard_files()["news-1"])
    names = [etree.QName(child).localname for child in url]
    assert names == ["loc", "image", "news"]
    assert url.findtext(f"{NS}loc") == f"{BASE}a"


def test_one_page_is_one_article_however_often_it_is_told(rig_of_news: Newsroom) -> None:
    """PROTOCOL W3, W5: one news:news for each url, in the file that was there."""
    for n in range(3):
        rig_of_news.do(article("a", title=f"{n}", lastmod=f"2026-11-2{n}"))

    content = rig_of_news.shard_files()["news-1"]
    assert (content.count(b"<url>"), content.count(b"<news:news>")) == (1, 1)


@pytest.fixture
def rig_of_news(store: redis.Redis, tmp_path: Path) -> Newsroom:
    return newsroom(store, tmp_path / "public")


@pytest.mark.parametrize(
    ("wrong", "of"),
    [
        (b"<url></url>", "urlset"),
        (b"<url><lastmod>2026-01-01</lastmod><loc>https://a.b/</loc></url>", "urlset"),
        (b"<url><loc>https://a.b/</loc><loc>https://a.b/</loc></url>", "urlset"),
        (b"<url><loc>https://a.b/</loc><lastmod></lastmod></url>", "urlset"),
        (b"<url><loc>https://a.b/</loc><priority>1.1</priority></url>", "urlset"),
        (b"<url><loc>https://a.b/</loc><extra/></url>", "urlset"),
        (b"", "urlset"),
        (b"<sitemap><loc>https://a.b/x-1.xml</loc></sitemap>", "sitemapindex"),
        (b"<sitemap><loc>https://a.b/sitemap.xml</loc>%b</sitemap>" % STAMP, "sitemapindex"),
        (b"<sitemap><loc>https://a.b/x-1.xml</loc>%b<priority>1.0</priority></sitemap>" % STAMP,
         "sitemapindex"),
        (b"", "sitemapindex"),
    ],
)  # fmt: skip
def test_our_schemas_refuse_what_the_protocol_does(wrong: bytes, of: str) -> None:
    """PROTOCOL F2, F12, F13, N1: what `check` holds every file against is no empty promise."""
    document = b'<%b xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">%b</%b>'
    name = of.encode()

    assert not SCHEMA[of].validate(etree.fromstring(document % (name, wrong, name)))


@pytest.mark.parametrize(
    "namespace", [fragments.NAMESPACE.replace("http", "https"), "urn:0.84", ""]
)
def test_our_schemas_refuse_another_namespace(namespace: str) -> None:
    """PROTOCOL F1."""
    url = "<url><loc>https://a.b/</loc></url>"
    right, wrong = (
        etree.fromstring(f'<urlset xmlns="{name}">{url}</urlset>')
        for name in (fragments.NAMESPACE, namespace)
    )

    assert SCHEMA["urlset"].validate(right)
    assert not SCHEMA["urlset"].validate(wrong)


def test_an_edit_that_is_undone_leaves_the_bytes_of_before(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL F9, F14: packed or not, equal content is equal bytes, in an order that stays."""
    rig = Rig(store, tmp_path, form="xml.gz")
    rig.do(*({"type": "upsert", "loc": f"{n}"} for n in range(50)))
    before = rig.files()["pages-1.xml.gz"].content

    rig.do({"type": "upsert", "loc": "7", "lastmod": "2020-01-01"})
    between = rig.files()["pages-1.xml.gz"].content
    rig.do({"type": "upsert", "loc": "7"})

    assert rig.files()["pages-1.xml.gz"].content == before != between
    lines = [gzip.decompress(content).splitlines() for content in (before, between)]
    assert sum(a != b for a, b in zip(*lines, strict=True)) == 1
