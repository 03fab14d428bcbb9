"""Values of the configuration from variables of the environment."""

from __future__ import annotations

from collections.abc import MutableMapping

import pytest

from tests.unit import configured
from tests.unit.configured import CANARY, Load, faults

SITE = f"{configured.SITE}[console]\nsession_hours = 8\n"


@pytest.mark.parametrize(
    ("given", "hours"),
    [
        ({}, 8),
        ({"SITEMAPD_CONSOLE__SESSION_HOURS": "3"}, 3),
        ({"sitemapd_console__session_hours": "3"}, 3),
        ({"SITEMAPD_CONSOLE": '{"session_hours": 4}'}, 4),
        ({"SITEMAPD_CONSOLE": "{}", "SITEMAPD_CONSOLE__SESSION_HOURS": "3"}, 3),
        ({"SITEMAPD_CONSOLE__SESSION_HOURS": "3", "SITEMAPD_CONSOLE": '{"session_hours": 4}'}, 3),
    ],
)
def test_a_variable_wins_over_the_file_and_over_that_of_the_table_around_it(
    load: Load, environment: MutableMapping[str, str], given: dict[str, str], hours: float
) -> None:
    environment.update(given)

    assert load(SITE).console.session_hours == hours


def test_lists_and_tables_are_given_as_json_and_texts_as_they_are(
    load: Load, environment: MutableMapping[str, str]
) -> None:
    environment["SITEMAPD_SITES__DEMO__TOKENS"] = '["fedcba9876543210"]'
    environment["SITEMAPD_SITES__DEMO__TITLE"] = "[1]"
    environment["SITEMAPD_SITES__DEMO__SECTIONS__NEWS"] = '{"news": true}'
    environment["SITEMAPD_METRICS_TOKEN"] = "{0123456789abcdef}"
    loaded = load(SITE)
    site = loaded.sites["demo"]

    assert [token.get_secret_value() for token in site.tokens] == ["fedcba9876543210"]
    assert site.title == "[1]"
    assert site.sections["news"].news
    assert loaded.metrics_token.get_secret_value() == "{0123456789abcdef}"


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("SITES", f"{{{CANARY}", "environment"),
        ("SITES__DEMO", f"{{{CANARY}", "environment"),
        ("SITES__DEMO__TOKENS", CANARY, "environment"),
        ("CONSOLE", "", "environment"),
        ("CONSOLE", "[]", "console"),
        ("CONSOLE__NOTHING", CANARY, "console.nothing"),
        ("SITES__DEMO__NOTHING__AT_ALL", CANARY, "sites.demo.nothing"),
        ("LINGER__SECONDS", CANARY, "linger"),
    ],
)
def test_a_variable_that_does_not_fit_is_a_fault_without_its_value(
    load: Load, environment: MutableMapping[str, str], name: str, text: str, field: str
) -> None:
    environment[f"SITEMAPD_{name}"] = text

    assert list(faults(load, SITE)) == [field]


def test_variables_that_name_no_field_are_of_other_programs(
    load: Load, environment: MutableMapping[str, str]
) -> None:
    environment["SITEMAPD_PORT"] = "tcp://10.0.0.1:80"
    environment["SITEMAPD_PORT__80"] = "1"

    assert load(SITE).linger == load(SITE).linger
