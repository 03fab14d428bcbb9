"""What real and broken sitemaps say of images, videos, news and languages becomes an event."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from lxml import etree

from shared.errors import Fault, InvalidError
from shared.events.event import Event, parse
from shared.events.event_fields import EventRules
from shared.sitemap import urls, w3c_dates
from shared.sitemap.extensions import alternates, images, news, videos
from shared.sitemap.extensions.languages import hreflang
from shared.sitemap.urls import Base
from tests.unit.extensions import LOC, NAMESPACES
from tests.unit.worker.sources.reading import Put
from worker.reconcile.event_mapping import EventMapper, Remark
from worker.reconcile.field_salvage import salvage
from worker.sources import Note, SourceRecord, read

FILES = {
    "image-01-suzuka.xml": 1_079, "video-01-suzuka.xml": 77 * 5 + 41 + 36 + 27,
    "video-02-hebdenbridge.xml": 94 + 6 * 5 + 23, "news-01-debatesylhet.xml": 60 * 4,
    "news-02-360sports-crlf.xml": 2 * 4, "news-03-boxofficeindia.xml": 89 * 4,
    "hreflang-01-eauenergie.xml": 25,
}  # fmt: skip
"""Each with its current fields, as grep counts them."""

TEXTS = {(videos.NAMESPACE, name) for name in ("title", "description", "duration", "tag")} | {
    (news.NAMESPACE, name) for name in ("name", "language", "title")
}
LINKS = {(images.NAMESPACE, "loc")} | {
    (videos.NAMESPACE, name) for name in ("thumbnail_loc", "content_loc", "player_loc")
}
DATES = {(videos.NAMESPACE, "publication_date"), (news.NAMESPACE, "publication_date")}


def pages(source: str) -> list[SourceRecord]:
    return [item for item in read(source) if isinstance(item, SourceRecord)]


def members_of(record: SourceRecord) -> dict[str, Any]:
    names = ("loc", "images", "videos", "news", "alternates")
    return {"type": "upsert"} | {n: v for n in names if (v := getattr(record, n))}


def rules(loc: str) -> EventRules:
    parts = urlsplit(loc)
    base = Base.parse(f"{parts.scheme}://{parts.netloc}/")
    return EventRules(base, frozenset({"pages", "news"}), news=frozenset({"news"}))


def leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value] if isinstance(value, str) else []


def stated(path: Path) -> list[list[str]]:
    """What another parser finds in each page's current fields, in the form we publish."""
    root = etree.parse(
        path, etree.XMLParser(resolve_entities=False, remove_comments=True)
    ).getroot()
    return [[said for node in url.iter() if (said := published(node))] for url in root]


def published(node: Any) -> str | None:
    name = etree.QName(node)
    key, text = (name.namespace, name.localname), " ".join((node.text or "").split())
    if key in LINKS:
        return urls.absolute(text)
    if key in DATES:
        return w3c_dates.canonical(text)
    if key == (alternates.NAMESPACE, "link"):
        return hreflang(node.get("hreflang")) + " " + urls.absolute(node.get("href"))
    return text if key in TEXTS else None


def came(event: Event) -> list[str]:
    links = [f"{code} {href}" for code, href in event.alternates]
    return links + leaves([*event.images, *event.videos, event.news or {}])


@pytest.mark.parametrize("name", FILES)
def test_each_current_field_of_a_real_file_comes_out_in_its_event(corpus: Path, name: str) -> None:
    """PROTOCOL H1, I1, V1, W1."""
    found = pages(str(corpus / name))
    wanted = stated(corpus / name)
    events = [
        parse(members_of(record), rules(record.loc)) for record in found if record.loc[0] == "h"
    ]

    assert sum(map(len, wanted)) == FILES[name]
    for said, event in zip(wanted, events, strict=True):
        assert sorted(said) == sorted(came(event))


def one(put: Put, xml: str) -> tuple[SourceRecord, list[Note]]:
    root = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" {NAMESPACES}>'
    items = list(read(put(f"{root}<url><loc>{LOC}</loc>{xml}</url></urlset>")))
    (record,) = [item for item in items if isinstance(item, SourceRecord)]
    return record, [item for item in items if isinstance(item, Note)]


FULL = (
    "<video:video><video:thumbnail_loc>https://c.example/t</video:thumbnail_loc>"
    "<video:title>T &amp; t</video:title><video:description><![CDATA[<b>]]></video:description>"
    '<video:player_loc allow_embed="yes">https://c.example/p</video:player_loc>'
    "<video:duration></video:duration><video:tag>a</video:tag><video:tag>b</video:tag>"
    '<video:restriction relationship="allow">DE AT</video:restriction>'
    '<video:uploader info="https://example.com/u">U</video:uploader></video:video>'
)


def test_attributes_lists_and_texts_are_read(put: Put) -> None:
    record, _ = one(put, FULL)

    assert parse(members_of(record), rules(LOC)).videos == (
        {
            "thumbnail_loc": "https://c.example/t", "title": "T & t", "description": "<b>",
            "player_loc": "https://c.example/p", "tags": ["a", "b"],
            "restriction": {"countries": "AT DE", "relationship": "allow"},
            "uploader": {"name": "U", "info": "https://example.com/u"},
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    ("xml", "rule", "detail"),
    [
        (FULL, "V9", "video:allow_embed has no effect any more"),
        ("<image:image><image:title>T</image:title></image:image>", "I2", "image:title has no"),
        ("<news:news><news:amp>1</news:amp></news:news>", "W9", "news:amp has no effect"),
        ("<news:news/><news:news/>", "W3", "more than one news:news"),
        ("<image:image><image:size>1</image:size></image:image>", "C0", "image:size=1"),
        ("<image:gallery/>", "C0", "image:gallery=1"),
        ('<xhtml:link rel="stylesheet" href="x"/>', "C0", "xhtml:link=1"),
        (
            "<image:image><image:loc>a</image:loc><image:loc>b</image:loc></image:image>",
            "F13", "several image:loc in one image: the first was taken",
        ),
    ],
)  # fmt: skip
def test_what_is_old_unknown_or_doubled_is_noted_by_name(
    put: Put, xml: str, rule: str, detail: str
) -> None:
    """PROTOCOL I2, V9, W9, C0."""
    _, notes = one(put, xml)

    assert any(note.rule == rule and detail in note.detail for note in notes)


GOOD, BAD = {"loc": "https://c.example/1"}, {"loc": "/1"}
VIDEO = {
    "thumbnail_loc": "https://c.example/t", "title": "T", "description": "D",
    "content_loc": "https://c.example/v",
}  # fmt: skip


def brought(members: dict[str, Any]) -> tuple[Event, dict[str, Fault]]:
    return salvage(
        {"type": "upsert", "loc": LOC, **members}, lambda given: parse(given, rules(LOC))
    )


@pytest.mark.parametrize(
    ("members", "kept", "gone"),
    [
        ({"images": [BAD, GOOD, BAD]}, {"images": (GOOD,)}, "images[0]"),
        ({"videos": [{**VIDEO, "duration": "0"}]}, {"videos": (VIDEO,)}, "videos[0].duration"),
        ({"videos": [{**VIDEO, "title": ""}, VIDEO]}, {"videos": (VIDEO,)}, "videos[0]"),
        ({"videos": [{**VIDEO, "tags": ["a", "t" * 3_000]}]},
         {"videos": ({**VIDEO, "tags": ["a"]},)}, "videos[0].tags[1]"),
        ({"news": {"title": "T"}}, {"news": None}, "news"),
        ({"alternates": [{"hreflang": "gr", "href": LOC}, {"hreflang": "en", "href": LOC}]},
         {"alternates": (("en", LOC),)}, "alternates[0]"),
        ({"lastmod": "1/1/26", "images": [GOOD]}, {"lastmod": None, "images": (GOOD,)}, "lastmod"),
    ],
)  # fmt: skip
def test_the_least_part_that_is_wrong_is_left_out_and_the_page_comes(
    members: dict[str, Any], kept: dict[str, Any], gone: str
) -> None:
    """PROTOCOL C0: a page is never lost for its extensions."""
    event, said = brought(members)

    assert {name: getattr(event, name) for name in kept} == kept
    assert gone in said


def told(record: SourceRecord, **sections: Any) -> tuple[Event | None, list[tuple[str, str]]]:
    said: list[Remark] = []
    event = EventMapper(rules(LOC), **sections).event(record, None, said.append)
    return event, [(each.rule, each.detail) for each in said]


def test_the_first_thousand_of_too_many_items_are_kept_and_that_is_said() -> None:
    """PROTOCOL I1, V11, V2: and as many tags as may be."""
    many = [{"loc": f"https://c.example/{n}"} for n in range(1_001)]
    tagged = {**VIDEO, "tags": [f"t{n}" for n in range(33)]}
    event, said = told(SourceRecord(LOC, "s.xml#1", images=many, videos=[VIDEO, tagged]))

    assert event is not None
    assert event.images == tuple(many[:1_000])
    assert event.videos[1]["tags"] == tagged["tags"][:32]
    assert said == [
        ("I1", "images: 1001 given, at most 1000 are allowed: the first 1000 were taken"),
        ("V2", "videos[1].tags: 33 given, at most 32 are allowed: the first 32 were taken"),
    ]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"videos": [{**VIDEO, "title": ""}]}, "videos[0] left out: title: is empty: send text"),
        ({"videos": [{**VIDEO, "duration": "0"}]}, "videos[0].duration left out: must be a whole"),
        ({"images": [{}]}, "images[0] left out: loc: is required: send it"),
        ({"news": {"title": "T"}}, "news left out: publication: is required"),
        ({"extra": {"section": "shop"}}, "section: not configured"),
        ({"loc": "https://else.example/"}, "loc: https://else.example is another site"),
    ],
)
def test_a_report_names_the_member_that_is_at_fault(members: dict[str, Any], said: str) -> None:
    ((_, detail),) = told(SourceRecord(**{"loc": LOC, "where": "s.xml#1", **members}))[1]

    assert detail.startswith(said)


def test_an_import_says_the_warnings_that_the_same_event_gets_at_the_door() -> None:
    article = {
        "publication": {"name": "N (online)", "language": "en"}, "title": "T - N (online)",
        "publication_date": w3c_dates.from_epoch_s(int(time.time())), "keywords": "old",
    }  # fmt: skip
    members = {
        "news": article, "alternates": [{"hreflang": "de", "href": "https://www.example.com/de"}],
        "videos": [{**VIDEO, "content_loc": "https://c.example/v.html"}],
    }  # fmt: skip
    warnings: list[Fault] = []
    parse({"type": "upsert", "loc": LOC, **members}, rules(LOC), warnings=warnings)
    _, said = told(SourceRecord(LOC, "s.xml#1", **members))

    door = {
        (each.rule.removeprefix("PROTOCOL "), f"{each.field}: {each.detail}") for each in warnings
    }
    assert {rule for rule, _ in door} == {"W7", "H2", "V8", "W9"}
    assert set(said) == {each for each in door if each[0] != "W9"}  # which readers say of the file


def test_each_part_left_out_is_said_once_with_what_was_wrong_with_it() -> None:
    _, said = brought({"images": [BAD, GOOD], "lastmod": "yesterday"})

    assert {name: fault.rule for name, fault in said.items()} == {
        "images[0]": "PROTOCOL L1", "lastmod": "PROTOCOL M1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("members", "field"), [({"loc": "/a"}, "loc"), ({"section": "news"}, "news")]
)
def test_what_a_page_cannot_be_without_is_not_left_out(members: dict[str, Any], field: str) -> None:
    """PROTOCOL W1: a page without news cannot come into a section for news."""
    with pytest.raises(InvalidError) as caught:
        brought({"images": [BAD], **members})

    assert [fault.field for fault in caught.value.faults] == [field]
