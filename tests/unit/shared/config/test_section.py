"""Sections: archives that cannot be meant are refused, with the reason."""

from __future__ import annotations

import pytest

from shared.domain.archive_rules import ArchiveRule
from tests.unit.configured import SITE, Load, faults

NINE = "archives = 'posts'\nafter_days = 9\n"


def with_archive(lines: str) -> str:
    return f"{SITE}\n[sites.demo.sections.posts]\n[sites.demo.sections.archive]\n{lines}\n"


def test_an_archive_takes_the_pages_of_a_section_by_age_and_by_fields(load: Load) -> None:
    lines = "archives = 'posts'\nafter_days = 365\nfields = { priority = ['.10'] }"

    routing = load(with_archive(lines)).sites["demo"].routing

    rule = ArchiveRule("posts", 365, (("priority", frozenset({"0.1"})),))
    assert routing.archives == {"posts": ("archive", rule)}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("after_days = 9", "only for a section that archives another"),
        ("fields = { kind = ['old'] }", "only for a section that archives another"),
        ("archives = 'posts'", "give after_days, fields, or both"),
        ("archives = 'posts'\nafter_days = 9\nsplit = 'month'", "excludes news, split"),
        ("archives = 'posts'\nafter_days = 9\npaths = ['/a/*']", "excludes news, split"),
        ("archives = 'archive'\nafter_days = 9", "must name another section"),
        ("archives = 'blog'\nafter_days = 9", "must name another section"),
        (
            f"{NINE}[sites.demo.sections.older]\narchives = 'archive'\nafter_days = 9",
            "must name another section",
        ),
        (
            f"{NINE}[sites.demo.sections.older]\narchives = 'posts'\nafter_days = 99",
            "has an archive already",
        ),
        ("archives = 'posts'\nfields = { title = ['old'] }", "fields.title"),
    ],
)
def test_what_cannot_be_meant_is_named(load: Load, lines: str, why: str) -> None:
    told = [f"{field}: {detail}" for field, detail in faults(load, with_archive(lines)).items()]

    assert any(why in each for each in told), told
