"""The table `pages` of a site."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from shared.config.sites.pages import LookSettings
from shared.config.sites.site import Site

SITE: dict[str, Any] = {
    "base_url": "https://www.example.com/", "web_root": "public", "tokens": ("0123456789abcdef",),
}  # fmt: skip


def test_without_the_table_there_are_no_looks_and_an_empty_one_switches_them_on() -> None:
    assert Site(**SITE).pages is None
    assert Site(**SITE, pages={}).pages == LookSettings()
    assert Site(**SITE, pages={}).waits_ms == Site(**SITE).waits_ms == (0, 0)


@pytest.mark.parametrize("former", [True, False])
def test_the_boolean_that_was_called_so_is_refused_with_its_new_name(former: bool) -> None:
    with pytest.raises(ValidationError, match=f"viewer = {str(former).lower()}"):
        Site(**SITE, pages=former)


def test_a_gate_and_proofs_wait_for_so_many_hours() -> None:
    pages = {"gate": True, "prove_lastmod": True, "wait_hours": 2}

    assert Site(**SITE, pages=pages).waits_ms == (7_200_000, 7_200_000)


@pytest.mark.parametrize(
    "wrong",
    [
        {"daily": 0},
        {"interval": -1},
        {"broken": "delete"},
        {"records": 10},
        {"nothing": 1},
        7,
        "on",
    ],
)
def test_what_is_no_setting_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        Site(**SITE, pages=wrong)
