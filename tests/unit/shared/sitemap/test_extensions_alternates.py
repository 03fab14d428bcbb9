"""Versions of a page in other languages, and the codes of these (PROTOCOL 1.7)."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.sitemap.extensions import alternates
from shared.sitemap.extensions.languages import hreflang
from shared.sitemap.extensions.report import ValueRefusedError, ValueReport
from tests.unit.extensions import LOC

DE = "https://www.example.de/a"


def take(*pairs: tuple[Any, Any]) -> tuple[alternates.Alternates, ValueReport]:
    report = ValueReport()
    given = [{"hreflang": code, "href": href} for code, href in pairs]
    return alternates.take(given, report, loc=LOC), report


def test_a_link_is_rendered_as_google_reads_it() -> None:
    """PROTOCOL H1."""
    assert alternates.render((("de", DE + "?a&b"),)) == (
        '<xhtml:link rel="alternate" hreflang="de" href="https://www.example.de/a?a&amp;b"/>'
    )


def test_a_set_without_the_page_itself_is_taken_with_a_warning() -> None:
    """PROTOCOL H2; one that is only part of its cluster is tolerated (H3)."""
    found, report = take(("de", DE))

    assert found == (("de", DE),)
    assert report.faults == []
    assert [(field, rule) for field, rule, _ in report.warnings] == [("alternates", "PROTOCOL H2")]
    assert take(("de", DE), ("en", LOC))[1].warnings == []


def test_alternates_are_sorted_by_code_with_x_default_last() -> None:
    """PROTOCOL H2, H8: the same set in any order is the same bytes on every page."""
    found, _ = take(("x-default", LOC), ("ZH-hant", DE + "3"), ("en-gb", LOC), ("de", DE))

    assert [code for code, _ in found] == ["de", "en-GB", "zh-Hant", "x-default"]


CODES = [
    ("en", "en"), ("EN", "en"), ("en-gb", "en-GB"), ("pt-BR", "pt-BR"), ("zh-hant", "zh-Hant"),
    ("ZH-HANS-cn", "zh-Hans-CN"), ("X-Default", "x-default"), ("uk", "uk"), ("be-BY", "be-BY"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "canonical"), CODES)
def test_codes_are_languages_with_maybe_a_script_and_a_country(code: str, canonical: str) -> None:
    """PROTOCOL H4."""
    assert hreflang(code) == canonical == hreflang(canonical)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("en-UK", "write en-GB"),
        ("en-EU", "name a country, or the language alone, en"),
        ("es-419", "name each country, as es-MX, or the language alone, es"),
        ("en_US", "write hyphens: en-US"),
        ("gr", "write el"),
        ("jp", "write ja"),
        ("at", "put a language first, en-AT"),
        ("US", "put a language first, en-US"),
        ("eng", "two letters of ISO 639-1: en"),
        ("ger-DE", "two letters of ISO 639-1: de"),
        ("zh-CN-Hans", "a script stands before it"),
        ("zh-Xxxx", "no script of ISO 15924"),
        ("x-other", "must begin with a language"),
        ("", "must begin with a language"),
        ("en-", "no country"),
        ("-", "must begin with a language"),
        ("de-1996", "no script"),
        ("e\u0301n", "must begin with a language"),
        ("a" * 10_000, "must begin with a language"),
    ],
)
def test_codes_that_google_does_not_know_are_refused_with_a_remedy(code: str, remedy: str) -> None:
    """PROTOCOL H4."""
    with pytest.raises(ValueRefusedError, match=remedy) as caught:
        hreflang(code)

    assert len(caught.value.detail) < 300


@given(st.text() | st.from_regex(r"[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,4}){0,2}", fullmatch=True))
def test_any_text_is_a_code_that_is_its_own_form_or_refused(text: str) -> None:
    """PROTOCOL H4."""
    try:
        code = hreflang(text)
    except ValueRefusedError:
        return

    assert code == hreflang(code)
    assert code.lower() == text.lower()


@pytest.mark.parametrize("second", ["de", "DE", "x-default"])
def test_a_code_is_given_once(second: str) -> None:
    """PROTOCOL H5: one URL for each code, `x-default` too."""
    first = "X-Default" if second == "x-default" else "de"
    _, report = take((first, LOC), (second, DE))

    ((field, rule, _),) = report.faults
    assert (field, rule) == ("alternates[1].hreflang", "PROTOCOL H5")


def test_an_alternate_may_be_on_any_host_and_is_absolute() -> None:
    """PROTOCOL H6; H7, that no other way says otherwise, is the site's own."""
    found, _ = take(("en", LOC), ("de", "HTTPS://WWW.example.de:443/a#b"))
    _, report = take(("en", LOC), ("de", "/de"))

    assert dict(found)["de"] == DE
    ((field, rule, _),) = report.faults
    assert (field, rule) == ("alternates[1].href", "PROTOCOL L1")


@pytest.mark.parametrize(
    "item", [{"hreflang": "de"}, {"href": DE}, {"hreflang": 1, "href": DE}, {}, {"href": None}]
)
def test_an_alternate_has_a_code_and_an_address(item: dict[str, Any]) -> None:
    """PROTOCOL H1."""
    report = ValueReport()
    alternates.take([item], report, loc=LOC)

    assert [rule for _, rule, _ in report.faults] == ["PROTOCOL H1"]


def test_1000_alternates_are_the_most() -> None:
    report = ValueReport()
    alternates.take([{}] * 1_001, report)

    assert [(field, rule) for field, rule, _ in report.faults] == [("alternates", "length")]


def test_the_lists_of_codes_are_not_loaded_before_one_is_asked_for() -> None:
    """They take a tenth of the start of a command, and a command line starts often."""
    code = (
        "import sys, shared.events.event, shared.config.settings;"
        " from shared.sitemap.extensions import languages;"
        " sys.exit(languages._codes.cache_info().currsize)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
