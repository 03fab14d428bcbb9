"""The accepted dates are those both the W3C profile and the sitemap schema take (PROTOCOL M1)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from shared.errors import DateError
from shared.sitemap.w3c_dates import canonical, epoch_ms, from_epoch_s
from tests.corpus import CORPUS

EMITTED = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?", re.ASCII)

date_like = st.from_regex(
    re.compile(
        r"\d{4}-[01]\d-[0-3]\d([Tt ][0-2]\d:[0-6]\d(:[0-6]\d(\.\d*)?)?(Z|[+-]\d\d:?\d\d)?)?"
    ),
    fullmatch=True,
)
aware = st.datetimes(
    min_value=datetime(1970, 1, 2),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001 - hypothesis adds the zone
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m))),
)


@pytest.mark.parametrize(
    ("text", "emitted"),
    [
        ("2026-11-21", "2026-11-21"),
        ("2024-02-29", "2024-02-29"),
        ("2026-11-21T10:20:30Z", "2026-11-21T10:20:30Z"),
        ("2026-11-21T10:20Z", "2026-11-21T10:20:00Z"),
        ("2026-11-21T10:20+01:00", "2026-11-21T09:20:00Z"),
        ("2026-11-21T10:20:30+00:00", "2026-11-21T10:20:30Z"),
        ("2026-11-21T10:20:30-00:00", "2026-11-21T10:20:30Z"),
        ("2026-12-31T23:30:00-01:00", "2027-01-01T00:30:00Z"),
        ("2026-01-01T13:59:59+14:00", "2025-12-31T23:59:59Z"),
        ("2026-11-21T10:20:30.9Z", "2026-11-21T10:20:30Z"),
        ("2026-11-21T10:20:30." + "9" * 5000 + "+05:45", "2026-11-21T04:35:30Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_an_accepted_text_has_one_published_form(text: str, emitted: str) -> None:
    assert emitted == canonical(text)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("2026", "full date"),
        ("2026-11", "full date"),
        ("2023-03-17 19:31:30", "capital T between date and time and add the zone"),
        ("2023-03-17 19:31:30Z", "capital T"),
        ("2023-03-17t19:31:30Z", "capital T"),
        ("2023-03-17T19:31:30", "add the zone"),
        ("2023-03-17T19:31", "add the zone"),
        ("2023-03-17T19:31:30+0000", "colon"),
        ("2023-03-17T19:31:30+00", "colon"),
        ("2023-03-17T19:31:30z", "as Z"),
        ("2023-03-17T19:31:30 UTC", "as Z"),
        ("2026-02-31", "no such day"),
        ("2023-02-29T00:00:00Z", "no such day"),
        ("0000-01-01", "no such day"),
        ("2026-13-01", "no such day"),
        ("2016-12-31T23:59:60Z", "leap second"),
        ("2026-11-21T24:00:00Z", "next day"),
        ("2026-11-21T10:60:00Z", "minutes"),
        ("2026-11-21T10:00:00+14:01", "zones"),
        ("2026-11-21T10:00:00-15:00", "zones"),
        ("2026-11-21T10:00:00+01:60", "zones"),
        ("0001-01-01T00:00:00+14:00", "outside the years"),
        ("9999-12-31T23:59:59-14:00", "outside the years"),
        (" 2026-11-21", "space around"),
        ("2026-11-21\n", "space around"),
        ("\u0662\u0660\u0662\u0666-11-21", "ASCII"),
        ("2026-11-21T10:20:30.\u0665Z", "ASCII"),
        ("2026-11-21T10:20:30.Z", "send YYYY-MM-DD"),
        ("11/09/2025", "send YYYY-MM-DD"),
        ("2026-W47-6", "send YYYY-MM-DD"),
        ("20261121", "send YYYY-MM-DD"),
        ("+2026-11-21", "send YYYY-MM-DD"),
        ("", "send YYYY-MM-DD"),
        ("\ud800", "ASCII"),
    ],
)
def test_a_refused_text_comes_back_with_its_remedy(text: str, remedy: str) -> None:
    with pytest.raises(DateError, match=re.escape(remedy)):
        canonical(text)


def test_a_message_repeats_only_the_start_of_a_long_text_and_nothing_unprintable() -> None:
    with pytest.raises(DateError) as caught:
        canonical("\x1b[31m\n" + "9" * 100_000)

    assert len(str(caught.value)) < 200
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01", 0),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:00.0019Z", 1),
        ("1970-01-01T00:00:01.5Z", 1_500),
        ("1970-01-01T01:00:00.25+01:00", 250),
        ("2026-11-21T10:20:30.123456Z", 1_795_256_430_123),
    ],
)
def test_milliseconds_of_a_fraction_are_kept_and_finer_ones_cut(
    text: str, milliseconds: int
) -> None:
    assert milliseconds == epoch_ms(text)


@pytest.mark.parametrize(
    "text", ["1969-12-31", "1969-12-31T23:59:59.999Z", "1970-01-01T00:00+00:01", "0001-01-01"]
)
def test_a_moment_before_1970_has_no_epoch(text: str) -> None:
    with pytest.raises(DateError, match="before 1970"):
        epoch_ms(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_zone_cannot_carry_a_moment_out_of_the_calendar(text: str) -> None:
    with pytest.raises(DateError):
        epoch_ms(text)


@given(st.text() | date_like)
def test_any_text_is_a_date_or_a_date_error(text: str) -> None:
    try:
        emitted = canonical(text)
    except DateError:
        with pytest.raises(DateError):
            epoch_ms(text)
        return

    assert EMITTED.fullmatch(emitted)
    assert emitted == canonical(emitted)


@given(aware)
def test_an_aware_datetime_keeps_its_moment(moment: datetime) -> None:
    text = moment.isoformat()
    second = moment.astimezone(UTC).replace(microsecond=0)

    assert second.strftime("%Y-%m-%dT%H:%M:%SZ") == canonical(text)
    assert int(second.timestamp()) * 1000 + moment.microsecond // 1000 == epoch_ms(text)


@given(st.integers(0, 253_402_300_799))
def test_seconds_and_text_are_two_forms_of_one_moment(seconds: int) -> None:
    assert seconds * 1000 == epoch_ms(from_epoch_s(seconds))


@pytest.mark.parametrize("seconds", [-(10**30), -62_135_596_801, 253_402_300_800, 10**30])
def test_seconds_outside_the_years_of_the_calendar_are_refused(seconds: int) -> None:
    with pytest.raises(DateError):
        from_epoch_s(seconds)


def test_every_published_form_is_valid_by_the_official_schema() -> None:
    xsd = CORPUS / "xsd" / "sitemap.xsd"
    if not xsd.exists():
        pytest.skip(f"no official schema at {xsd}; point SITEMAPD_CORPUS at the corpus")
    schema = etree.XMLSchema(etree.parse(xsd))
    page = (
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        "<url><loc>https://www.example.com/</loc><lastmod>{}</lastmod></url></urlset>"
    )
    texts = ["2026-11-21", "0001-01-01T00:00Z", "2026-11-21T10:20+14:00", "9999-12-31T23:59:59.9Z"]

    assert all(schema.validate(etree.fromstring(page.format(canonical(text)))) for text in texts)
