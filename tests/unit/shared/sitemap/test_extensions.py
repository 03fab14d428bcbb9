"""Any entry with any extensions is valid by the official schemas and reads back as it was."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from shared.errors import InvalidError
from shared.events.event import Event, SchemaError, parse
from shared.events.event_fields import EventRules
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.sitemap.extensions import alternates, elements, images, news, videos
from shared.sitemap.extensions.elements import Element
from shared.sitemap.extensions.report import ValueReport
from tests.unit.extensions import (
    IMAGE,
    LOC,
    NEWS,
    VIDEO,
    document,
    full_entries,
    image_values,
    news_values,
    official,
    texts,
    video_values,
)
from tests.unit.strategies import ROOT

RULES = EventRules(ROOT, frozenset({"pages", "news"}), news=frozenset({"news"}), deprecated=True)
UPSERT = {"type": "upsert", "loc": LOC}
schema = lru_cache(official)

names = st.sampled_from(
    ["loc", "title", "publication", "name", "language", "tags", "hreflang", "href", "info", "value"]
)
near = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.sampled_from([LOC, "en"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


@given(full_entries)
def test_an_entry_with_any_extensions_is_valid_and_reads_back(corpus: Path, entry: Entry) -> None:
    """PROTOCOL F5, F6, H1, I1, V2, W2, C0: in the order of the schemas, with their namespaces."""
    assert corpus
    schema().assertValid(etree.fromstring(document(entry)))
    assert entry == fragments.parse(fragments.render(entry))


@given(full_entries)
def test_each_extension_is_one_run_after_the_core(entry: Entry) -> None:
    """PROTOCOL C0."""
    url = etree.fromstring(document(entry))[0]
    spaces = [etree.QName(child).namespace for child in url]
    order = [fragments.NAMESPACE, *(m.NAMESPACE for m in (alternates, images, videos, news))]

    assert spaces == sorted(spaces, key=order.index)
    assert fragments.render(entry).count(b"\n") == 1


@given(full_entries)
def test_every_leaf_of_a_canonical_value_is_the_text_of_the_xml(entry: Entry) -> None:
    root = etree.fromstring(document(entry))[0]
    said = [text for each in root.iter() for text in (each.text, *each.attrib.values()) if text]
    values = [*leaves(entry.images), *leaves(entry.videos), *leaves(entry.news or {})]

    assert all(type(leaf) is str for leaf in values)
    assert set(values) <= set(said)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "images": st.lists(image_values, max_size=2) | near,
            "videos": st.lists(video_values, max_size=2) | near,
            "news": news_values | near,
            "alternates": near,
            "title": texts | near,
            "published": near,
            "lang": near,
            "group": near,
        },
    )
)
def test_any_json_gives_valid_xml_or_faults_and_survives_the_inbox(
    corpus: Path, item: dict[str, Any]
) -> None:
    """PROTOCOL F4: whatever characters and values a sender gives."""
    assert corpus
    try:
        event = parse({**UPSERT, **item}, RULES, 0, [])
    except InvalidError:
        return
    entry = Entry(LOC, None, None, None, event.images, event.videos, event.news, event.alternates)

    schema().assertValid(etree.fromstring(document(entry)))
    assert entry == fragments.parse(fragments.render(entry))
    assert event == Event.load(event.dump())


@pytest.mark.parametrize("extension", ["images", "videos", "news", "alternates"])
@pytest.mark.parametrize("value", [1, "x", True, [1], ["x"], [[]], {"x": 1}, [{"x": 1}], [None]])
def test_values_of_a_wrong_shape_are_faults_with_their_path(extension: str, value: Any) -> None:
    with pytest.raises(InvalidError) as caught:
        parse({**UPSERT, extension: value}, RULES)

    assert all(fault.field.startswith(extension) for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("members", "known"),
    [
        ({"images": [{**IMAGE, "size": 1}]}, "loc, caption"),
        ({"videos": [{**VIDEO, "tag": "a"}]}, "thumbnail_loc, title"),
        ({"videos": [{**VIDEO, "uploader": {"name": "a", "url": "b"}}]}, "name, info"),
        ({"news": {**NEWS, "name": "a"}}, "publication, access"),
        ({"alternates": [{"hreflang": "en", "href": LOC, "rel": "x"}]}, "hreflang, href"),
    ],
)
def test_unknown_members_are_refused_and_the_known_ones_named(
    members: dict[str, Any], known: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        parse({**UPSERT, **members}, RULES)

    (fault,) = caught.value.faults
    assert fault.rule == "unknown-field"
    assert known in fault.detail


def tables(element: Element) -> list[Element]:
    return [element, *(each for part in element.parts.values() for each in tables(part))]


def test_every_element_has_a_rule_a_member_and_a_way_to_be_written() -> None:
    for table in (images.IMAGE, videos.VIDEO, news.NEWS):
        for element in tables(table):
            assert element.rule.startswith("PROTOCOL ")
            assert (element.kind is None) == bool(element.parts)
            assert elements.schema(element)


@pytest.mark.parametrize(
    "stored",
    [
        {"images": [{"loc": "</url>"}]},
        {"images": [{"loc": "https://cdn.example.net/1.jpg", "size": "1"}]},
        {"images": [{"loc": "HTTPS://cdn.example.net/1.jpg"}]},
        {"images": "x"},
        {"images": [7]},
        {"videos": [{**VIDEO, "duration": 600}]},
        {"videos": [{**VIDEO, "title": "a\nb"}]},
        {"videos": [{**VIDEO, "content_loc": LOC}]},
        {"news": {**NEWS, "amp": "x"}},
        {"news": []},
        {"alternates": [["EN", LOC]]},
        {"alternates": [["en", LOC, 1]]},
        {"alternates": [["en", LOC], ["de", LOC]]},
        {"alternates": ["en"]},
        {"lang": ["de", "en", "aa"]},
        {"lang": [1]},
        {"lang": ["gr"]},
        {"published": "2026"},
        {"title": " a"},
        {"title": "a\x00"},
        {"group": "\ud800"},
    ],
    ids=json.dumps,
)
def test_extensions_that_were_never_accepted_do_not_come_out_of_the_inbox(
    stored: dict[str, Any],
) -> None:
    """RELIABILITY T14: whoever can write into the store cannot write into a file."""
    assert Event.load(json.dumps({"v": 1, **UPSERT}).encode())
    with pytest.raises(SchemaError):
        Event.load(json.dumps({"v": 1, **UPSERT, **stored}).encode())


@settings(max_examples=20)
@given(full_entries)
def test_a_canonical_value_is_its_own_canonical_form(entry: Entry) -> None:
    report = ValueReport()

    assert images.take(list(entry.images), report, deprecated=True) == entry.images
    assert videos.take(list(entry.videos), report, loc=None, deprecated=True) == entry.videos
    assert news.take(entry.news, report, deprecated=True) == entry.news
    assert report.faults == []


def test_an_event_that_is_too_large_for_a_file_is_a_fault() -> None:
    """PROTOCOL F7: the bytes of one entry, at the exact boundary."""
    size = len(fragments.render(Entry(LOC, images=(IMAGE,))))

    def rules(most: int) -> EventRules:
        return EventRules(ROOT, frozenset({"pages"}), most_bytes=most)

    assert parse({**UPSERT, "images": [IMAGE]}, rules(size)).images == (IMAGE,)
    with pytest.raises(InvalidError) as caught:
        parse({**UPSERT, "images": [IMAGE]}, rules(size - 1))
    assert [(f.field, f.rule) for f in caught.value.faults] == [("images", "PROTOCOL F7")]


def test_no_event_takes_more_than_a_mebibyte() -> None:
    """PROTOCOL F7: ours, for any file could hold it."""
    image = {"loc": "https://cdn.example.net/" + "a" * 2_000}
    rules = EventRules(ROOT, frozenset({"pages"}), most_bytes=52_428_800)

    with pytest.raises(InvalidError, match="at most 1048576 are allowed"):
        parse({**UPSERT, "images": [image] * 600}, rules)
