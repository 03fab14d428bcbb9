"""Any JSON value is an event or a report of all its faults (DESIGN 6)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Fault, InvalidError
from shared.events.event import (
    EXTENDED_SCHEMA,
    FIELDS,
    PLAIN_SCHEMA,
    SCHEMA,
    TYPES,
    Event,
    NewerSchemaError,
    SchemaError,
    parse,
)
from shared.events.event_fields import (
    EARLIEST_VERSION,
    MAX_AHEAD_MS,
    MAX_ID,
    MAX_VERSION,
    PAGE_TYPES,
    EventRules,
)
from shared.sitemap.entry import CHANGEFREQS
from shared.sitemap.urls import MAX_LENGTH
from tests.unit.extensions import NEWS
from tests.unit.strategies import ROOT, lastmods, locs, priorities

NOW = 1_795_256_430_000
"""2026-11-21T10:20:30Z, in milliseconds."""

RULES = EventRules(ROOT, frozenset({"pages", "posts", "news"}))
ON_THE_DAY = replace(RULES, clock=lambda: NOW)
LOC = "https://www.example.com/a"
UPSERT = {"type": "upsert", "loc": LOC}

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
near_values = json_values | st.sampled_from(
    ["upsert", "delete", LOC, "pages", "2026-11-21", "0.5", 10**400, "\ud800", "daily", True, 0.5]
)
near_events = st.dictionaries(st.sampled_from([*FIELDS, "mobile"]), near_values)

idents = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=MAX_ID)
valid_events = st.builds(
    Event,
    type=st.sampled_from(PAGE_TYPES),
    loc=locs,
    id=st.none() | idents,
    section=st.none() | st.sampled_from(sorted(RULES.sections)),
    version=st.none() | st.integers(EARLIEST_VERSION, NOW),
    lastmod=st.none() | lastmods,
    changefreq=st.none() | st.sampled_from(sorted(CHANGEFREQS)),
    priority=st.none() | priorities,
    noindex=st.booleans(),
    canonical=st.none() | locs,
)


def faults(item: object, position: int | None = None) -> tuple[Fault, ...]:
    with pytest.raises(InvalidError) as caught:
        parse(item, RULES, position)
    return caught.value.faults


def only_fault(**members: Any) -> Fault:
    (fault,) = faults({**UPSERT, **members})
    return fault


@given(json_values | near_events | near_events.map(lambda item: {**UPSERT, **item}))
def test_any_value_is_an_event_or_an_invalid_error(item: object) -> None:
    try:
        event = parse(item, RULES, 7)
    except InvalidError as error:
        named = [fault.item == 7 and fault.rule and fault.detail for fault in error.faults]
    else:
        named = [event.type in TYPES, event == Event.load(event.dump())]

    assert named
    assert all(named)


@given(valid_events)
def test_a_valid_event_is_taken_as_it_is(event: Event) -> None:
    members = {name: value for name in FIELDS if (value := getattr(event, name)) is not None}

    assert event == parse(json.loads(json.dumps(members)), RULES)


@given(valid_events, st.text(max_size=9), st.text(max_size=9), st.text(max_size=9))
def test_the_inbox_gives_back_what_was_put_in(
    event: Event, source: str, kind: str, locale: str
) -> None:
    fields = {name: getattr(event, name) for name in FIELDS}
    event = Event(**fields, source=source, kind=kind, locale=locale)

    assert event == Event.load(event.dump())


def test_members_with_their_default_take_no_room_in_the_inbox() -> None:
    event = parse(UPSERT, RULES)

    assert json.loads(event.dump()) == {"v": PLAIN_SCHEMA, **UPSERT}


def test_an_event_is_stored_in_the_oldest_form_that_can_hold_it() -> None:
    """RELIABILITY F21: older workers go on with what they know, and leave the rest to newer."""
    plain = parse(UPSERT, RULES)
    titled = parse(UPSERT | {"title": "About us"}, RULES)

    assert json.loads(plain.dump())["v"] == 1
    assert json.loads(titled.dump())["v"] == EXTENDED_SCHEMA == 2
    for newest in ({"description": "Who we are"}, {"expires": "2027-01-01"}):
        event = parse(UPSERT | newest, RULES)
        assert json.loads(event.dump())["v"] == SCHEMA == 3
        assert Event.load(event.dump()) == event


@pytest.mark.parametrize("item", [None, True, 1, "upsert", [], [UPSERT]])
def test_an_event_is_an_object(item: object) -> None:
    (fault,) = faults(item, 3)

    assert (fault.rule, fault.item) == ("event", 3)


def test_every_fault_of_an_item_is_reported_at_once() -> None:
    item = {
        "type": "update", "loc": "/a", "id": "", "section": "blog", "version": -1,
        "lastmod": "21.11.2026", "changefreq": "often", "priority": 2, "noindex": "yes",
        "canonical": "/b", "prefix": "/c", "status": 0, "redirect_to": "/d",
        "images": {}, "videos": [1], "news": 1,
            "alternates": [{}],
        "group": "", "lang": "gr", "published": "2026", "title": " ",
        "publish_at": "tomorrow", "expires": 7, "description": "", "mobile": [],
    }  # fmt: skip
    found = faults(item, 5)

    assert [*FIELDS, "mobile"] == list(dict.fromkeys(re.split(r"\W", f.field)[0] for f in found))
    assert {5} == {fault.item for fault in found}


def test_unknown_members_are_refused_by_name_and_the_known_ones_listed() -> None:
    fault = only_fault(last_mod="2026-11-21")

    assert (fault.field, fault.rule) == ("last_mod", "unknown-field")
    assert all(name in fault.detail for name in FIELDS)


def test_the_name_of_an_unknown_member_is_repeated_in_part_only() -> None:
    assert only_fault(**{"x" * 1_000: 1}).field == "x" * 64


def test_what_is_null_is_not_there() -> None:
    nothing = dict.fromkeys(FIELDS[2:]) | {"noindex": False}

    assert parse(UPSERT, RULES) == parse({**UPSERT, **nothing}, RULES)


@pytest.mark.parametrize("value", ["Upsert", "", None, 1, ["upsert"], {"upsert": 1}, "sync"])
def test_a_type_is_one_of_those_there_are(value: object) -> None:
    fault = only_fault(type=value)

    assert (fault.field, fault.rule) == ("type", "event-type")
    assert "upsert, delete" in fault.detail


@pytest.mark.parametrize("members", [{}, {"loc": None}, {"id": "7"}])
def test_an_upsert_needs_a_loc(members: dict[str, Any]) -> None:
    (fault,) = faults({"type": "upsert", **members})

    assert (fault.field, fault.rule) == ("loc", "PROTOCOL L1")


def test_a_delete_needs_a_loc_or_an_id() -> None:
    (fault,) = faults({"type": "delete"})

    assert fault.rule == "required"
    assert parse({"type": "delete", "id": "7"}, RULES) == Event("delete", id="7")
    assert parse({"type": "delete", "loc": LOC}, RULES) == Event("delete", LOC)


def test_2047_characters_are_the_longest_loc() -> None:
    longest = ROOT.prefix + "a" * (MAX_LENGTH - len(ROOT.prefix))
    fault = only_fault(loc=longest + "a")

    assert len(longest) == 2_047
    assert longest == parse({**UPSERT, "loc": longest}, RULES).loc
    assert (fault.field, fault.rule) == ("loc", "PROTOCOL L2")


@pytest.mark.parametrize("name", ["loc", "section", "lastmod", "changefreq", "canonical"])
@pytest.mark.parametrize("value", [0, True, 1.5, [], {}])
def test_a_member_that_is_text_takes_nothing_else(name: str, value: object) -> None:
    fault = only_fault(**{name: value})

    assert (name, "type") == (fault.field, fault.rule)


@pytest.mark.parametrize(
    ("value", "version"),
    [
        (0, 0),
        (1_795_256_430_123, 1_795_256_430_123),
        (EARLIEST_VERSION, EARLIEST_VERSION),
        (NOW + MAX_AHEAD_MS, NOW + MAX_AHEAD_MS),
        ("1970-01-01", 0),
        ("2026-11-21T10:20:30.123Z", 1_795_256_430_123),
        ("2026-11-21T11:20:30.123+01:00", 1_795_256_430_123),
    ],
)
def test_a_version_is_milliseconds_or_a_moment(value: object, version: int) -> None:
    assert version == parse({**UPSERT, "version": value}, ON_THE_DAY).version


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (NOW // 1_000, "looks like seconds: send 1795256430000"),
        (EARLIEST_VERSION // 1_000, "looks like seconds: send 946684800000"),
        (NOW * 1_000 + 7, "looks like microseconds: send 1795256430000"),
        (NOW * 1_000_000 + 7, "looks like nanoseconds: send 1795256430000"),
        (NOW + MAX_AHEAD_MS + 1, "is more than 24 hours ahead of this clock"),
        (20_261_121_102_030, "is in the year 2612; at most 24 hours ahead of this clock is taken"),
        ((1 << 47) - 1, "is in the year 6429; at most 24 hours ahead of this clock is taken"),
        ("9999-12-31", "is in the year 9999; at most 24 hours ahead of this clock is taken"),
    ],
)
def test_a_version_in_another_unit_or_far_ahead_is_refused_by_name(
    value: object, said: str
) -> None:
    """RELIABILITY T37: it would hold its page against every later event."""
    with pytest.raises(InvalidError) as refused:
        parse({**UPSERT, "version": value}, ON_THE_DAY)

    (fault,) = refused.value.faults
    assert fault.field == fault.rule == "version"
    assert fault.detail.startswith("version is milliseconds since 1970; ")
    assert fault.detail.endswith(said)


@pytest.mark.parametrize("value", ["2026", "2026-11", "0001-12"])
def test_a_year_or_a_month_alone_is_taken_as_no_lastmod_with_a_warning(value: str) -> None:
    """PROTOCOL M1: legal W3C, and no lastmod of the schema; the page is changed all the same."""
    warnings: list[Fault] = []

    assert parse({**UPSERT, "lastmod": value}, RULES, warnings=warnings).lastmod is None
    assert [(each.field, each.rule) for each in warnings] == [("lastmod", "PROTOCOL M1")]
    assert f"left out: {value} names no day" in warnings[0].detail


@pytest.mark.parametrize("value", ["2026-00", "2026-13", "26-11", "2026-1", "0000", "2026-W47"])
def test_what_is_like_a_month_and_none_is_refused(value: str) -> None:
    assert only_fault(lastmod=value).rule == "PROTOCOL M1"


@pytest.mark.parametrize(
    ("lastmod", "warned"),
    [
        ("2026-11-21T10:25:30Z", False), ("2026-11-21T10:25:31Z", True), ("2026-11-22", False),
        ("2026-11-23", True), ("2099-01-01", True),
    ],
)  # fmt: skip
def test_a_lastmod_in_the_future_is_taken_with_a_warning(lastmod: str, warned: bool) -> None:
    """PROTOCOL M5: it will not be listed, and whoever sent it is told."""
    warnings: list[Fault] = []
    parse({**UPSERT, "lastmod": lastmod}, ON_THE_DAY, 3, warnings)
    told = [Fault("lastmod", "PROTOCOL M5", f"left out: {lastmod} lies in the future", 3)]

    assert warnings == (told if warned else [])


def test_a_version_that_only_counts_is_taken_with_a_warning() -> None:
    """It orders the events that have one; those without win."""
    warnings: list[Fault] = []

    assert parse({**UPSERT, "version": 7}, RULES, warnings=warnings).version == 7
    assert [(each.field, each.rule) for each in warnings] == [("version", "version")]
    assert "7 is before every event without one" in warnings[0].detail


@pytest.mark.parametrize(
    "value",
    [
        -1, MAX_VERSION + 1, 10**5_000, 1.0, True, [], "", "7", "1969-12-31", "9999-12-31",
        "2026-11-21 10:20",
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_names_no_moment_that_can_be_kept_is_no_version(value: object) -> None:
    fault = only_fault(version=value)

    assert fault.field == "version"
    assert fault.rule in {"version", "PROTOCOL M1"}


@pytest.mark.parametrize(
    ("value", "ident"),
    [(0, "0"), (-7, "-7"), ("7", "7"), ("a" * MAX_ID, "a" * MAX_ID), ("\x00\U0001f600",) * 2],
    ids=lambda value: type(value).__name__,
)
def test_an_id_is_a_text_or_an_integer(value: object, ident: str) -> None:
    assert ident == parse({**UPSERT, "id": value}, RULES).id


@pytest.mark.parametrize(
    "value",
    ["", "a" * (MAX_ID + 1), 10 ** (MAX_ID - 1), 10**5_000, True, 1.0, [], "a\ud800"],
    ids=lambda value: type(value).__name__,
)
def test_an_id_that_cannot_be_kept_is_refused(value: object) -> None:
    assert only_fault(id=value).field == "id"


def test_a_section_that_is_not_configured_is_refused_and_the_configured_ones_named() -> None:
    fault = only_fault(section="blog")

    assert (fault.field, fault.rule) == ("section", "section")
    assert "news, pages, posts" in fault.detail


def test_lastmod_is_stored_in_its_published_form() -> None:
    event = parse({**UPSERT, "lastmod": "2026-11-21T10:20+01:00"}, RULES)

    assert event.lastmod == "2026-11-21T09:20:00Z"


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("HTTPS://WWW.EXAMPLE.COM:443/a#top", LOC),
        ("https://other.example/a", "https://other.example/a"),
        ("http://www.example.com/a", "http://www.example.com/a"),
        ("https://www.example.com\\@other.example/", "https://www.example.com\\@other.example/"),
    ],
)
def test_a_canonical_of_this_site_is_compared_in_the_form_of_loc(value: str, stored: str) -> None:
    assert stored == parse({**UPSERT, "canonical": value}, RULES).canonical


def test_a_relative_canonical_is_refused_rather_than_taken_for_another_page() -> None:
    assert only_fault(canonical="/a").rule == "PROTOCOL L1"


def test_an_event_of_a_newer_schema_is_told_from_garbage() -> None:
    with pytest.raises(NewerSchemaError, match=f"reads {SCHEMA}"):
        Event.load(json.dumps({"v": SCHEMA + 1, "what": "ever"}).encode())


@pytest.mark.parametrize(
    "stored",
    [
        b"", b"\xff", b"{", b"null", b"7", b"[]", b'["v"]', b'"v"', b"{}", b'{"v":1}',
        b'{"v":"1","type":"upsert"}', b'{"v":null,"type":"upsert"}', b'{"v":1,"type":"a","x":1}',
        b'{"type":"upsert"}', b"[" * 100_000, b"1" * 5_000, b'{"v":1,"type":"upsert"}',
        b'{"v":1,"type":"other","loc":"x"}', b'{"v":1,"type":"delete","loc":7}',
        b'{"v":1,"type":"delete","loc":"x","version":true}', b'{"v":NaN,"type":"delete"}',
        b'{"v":1,"type":"delete","loc":"x","noindex":0}',
    ],
    ids=lambda stored: stored[:30].decode("latin-1"),
)  # fmt: skip
def test_what_no_version_of_ours_stored_is_a_schema_error(stored: bytes) -> None:
    with pytest.raises(SchemaError) as caught:
        Event.load(stored)

    assert not isinstance(caught.value, NewerSchemaError)


@given(locs, st.none() | lastmods, st.sampled_from(["upsert", "delete"]))
def test_a_stored_event_is_the_same_however_its_json_is_written(
    loc: str, lastmod: str | None, kind: str
) -> None:
    event = Event(kind, loc, lastmod=lastmod)
    spaced = json.dumps(json.loads(event.dump()), indent=1).encode()

    assert Event.load(event.dump()) == Event.load(spaced) == event


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_an_event_or_a_schema_error(stored: bytes) -> None:
    try:
        event = Event.load(stored)
    except SchemaError:
        return

    assert isinstance(event, Event)


NEWS_RULES = replace(RULES, news=frozenset({"news"}))


def warned(rules: EventRules, **members: Any) -> list[tuple[str, str]]:
    """Field and rule of each warning about an event that is taken."""
    found: list[Fault] = []
    parse({**UPSERT, **members}, rules, 7, found)
    assert all(fault.item == 7 and fault.detail for fault in found)
    return [(fault.field, fault.rule) for fault in found]


def test_a_group_needs_a_language_and_excludes_alternates() -> None:
    """PROTOCOL H1, H2."""
    links = [{"hreflang": "en", "href": LOC}]

    assert parse({**UPSERT, "group": 7, "lang": "en-gb"}, RULES).group == "7"
    assert only_fault(group="g").field == "lang"
    assert only_fault(group="g", lang=[]).field == "lang"
    assert only_fault(group="g", lang="en", alternates=links).field == "group"
    assert only_fault(group="", lang="en").field == "group"
    assert only_fault(group="g" * (MAX_ID + 1), lang="en").rule == "length"


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        ("EN", ("en",)),
        (["x-default", "en"], ("en", "x-default")),
        (["en", "EN", "de"], ("de", "en")),
        ([], ()),
        (None, ()),
    ],
)
def test_a_page_is_the_version_for_one_language_or_several(
    value: object, codes: tuple[str, ...]
) -> None:
    """PROTOCOL H4, H8: one page may be that for `en` and for everybody else."""
    assert parse({**UPSERT, "lang": value}, RULES).lang == codes


@pytest.mark.parametrize("value", ["gr", "", 1, ["en", 1], {}, ["en"] * 33])
def test_what_is_no_language_is_a_fault(value: object) -> None:
    """PROTOCOL H4."""
    place = "[1]" if value == ["en", 1] else ""
    assert only_fault(lang=value).field == f"lang{place}"


def test_a_description_is_one_line_of_bounded_length() -> None:
    assert parse({**UPSERT, "description": " A\npage "}, RULES).description == "A page"
    assert parse({**UPSERT, "description": "t" * 1_000}, RULES).description == "t" * 1_000
    assert only_fault(description="t" * 1_001).field == "description"


def test_title_and_first_publication_are_kept_for_feeds() -> None:
    event = parse({**UPSERT, "title": " A\ntitle ", "published": "2026-11-21T10:20+01:00"}, RULES)

    assert (event.title, event.published) == ("A title", "2026-11-21T09:20:00Z")
    assert event == Event.load(event.dump())
    assert parse({**UPSERT, "title": "t" * 500}, RULES).title == "t" * 500
    assert only_fault(title="t" * 501).field == "title"
    assert only_fault(published="2026").rule == "PROTOCOL M1"
    assert warned(RULES, title="a\x00b") == [("title", "PROTOCOL F4")]


def test_news_need_a_section_for_news() -> None:
    """PROTOCOL W11."""
    fault = only_fault(news=NEWS)

    assert (fault.field, fault.rule) == ("news", "PROTOCOL W11")
    assert "news = true" in fault.detail
    assert parse({**UPSERT, "news": NEWS}, NEWS_RULES).news == NEWS


def test_a_page_in_a_news_section_needs_its_news() -> None:
    """PROTOCOL W1."""
    page = {**UPSERT, "section": "news"}
    with pytest.raises(InvalidError) as caught:
        parse(page, NEWS_RULES)

    assert [(f.field, f.rule) for f in caught.value.faults] == [("news", "PROTOCOL W1")]
    for sound in ({"news": NEWS}, {"noindex": True}, {"type": "delete"}, {"section": "posts"}):
        assert parse({**page, **sound}, NEWS_RULES)


def test_urls_that_an_engine_does_not_read_are_warned_about_where_it_is_named() -> None:
    """PROTOCOL L2, N8: 1,024 characters for Yandex, 256 bytes for Baidu."""
    both = replace(RULES, engines=frozenset({"yandex", "baidu"}))

    def long(length: int) -> str:
        return ROOT.prefix + "a" * (length - len(ROOT.prefix))

    assert warned(both, loc=long(256)) == []
    assert warned(both, loc=long(257)) == [("loc", "PROTOCOL N8")]
    assert warned(both, loc=long(1_024)) == [("loc", "PROTOCOL N8")]
    assert warned(both, loc=long(1_025)) == [("loc", "PROTOCOL L2"), ("loc", "PROTOCOL N8")]
    assert warned(replace(RULES, engines=frozenset({"yandex"})), loc=long(1_025)) == [
        ("loc", "PROTOCOL L2")
    ]
    assert warned(RULES, loc=long(2_047)) == []


def test_warnings_of_an_event_with_faults_are_not_given() -> None:
    found: list[Fault] = []
    with pytest.raises(InvalidError):
        parse({**UPSERT, "title": "a\x00", "priority": 2}, RULES, None, found)

    assert found == []
