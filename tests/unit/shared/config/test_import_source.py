"""The settings of a source of truth: what goes together, and that no fault repeats a secret."""

from __future__ import annotations

import pytest

from tests.unit.configured import CANARY, Load, faults, with_site

SQL = f"sql:postgresql://me:{CANARY}@db.example/cms"


@pytest.mark.parametrize(
    "lines",
    [
        'source = "https://www.example.com/sitemap.xml"',
        'source = "sitemap:/var/www/old.xml"\nreconcile_hours = 24',
        'source = "/var/www/old.xml"',
        'source = "csv:/srv/pages.csv"',
        'source = "wordpress:https://www.example.com/"',
        'source = "wordpress:https://www.example.com/#posts"\nsource_key = "me:abcd efgh"',
        f'source = "ghost:https://www.example.com/"\nsource_key = "{CANARY}"',
        f'source = "{SQL}"\nsource_query = "SELECT loc FROM pages"',
    ],
)
def test_a_source_is_taken(load: Load, lines: str) -> None:
    site = load(with_site(lines)).sites["demo"]

    assert site.source.get_secret_value() in lines
    assert CANARY not in repr(site)


@pytest.mark.parametrize(
    ("lines", "detail"),
    [
        (f'source = "gopher:{CANARY}"', "source: must begin with one of sitemap:, csv:"),
        (
            'source = "wordpress:www.example.com"',
            "source: must be an address, e.g. wordpress:https://",
        ),
        ('source = "sql:"', "source: must be sql: followed by its address"),
        ('source = "ghost:https://www.example.com/"', "source_key: ghost needs a key"),
        (f'source = "{SQL}"', "source_query: sql needs a SELECT"),
        ('source = "csv:/a"\nsource_query = "SELECT 1"', "source_query: only for sql"),
        (f'source = "csv:/a"\nsource_key = "{CANARY}"', "source_key: only for a database or a CMS"),
        (
            f'source = "wordpress:https://a.example/"\nsource_key = "{CANARY}"',
            "source_key: for wordpress it must be user:application password",
        ),
        (f'source_key = "{CANARY}"', "source_key: needs `source`"),
        ("reconcile_hours = 1", "reconcile_hours: needs `source`"),
    ],
)
def test_a_source_that_cannot_be_meant_is_named(load: Load, lines: str, detail: str) -> None:
    field, told = next(iter(faults(load, with_site(lines)).items()))

    assert f"{field}: {told}".startswith(f"sites.demo.{detail}")


def test_hours_are_a_number_of_at_most_a_year(load: Load) -> None:
    source = 'source = "csv:/a"\nreconcile_hours = '

    for hours in ("-1", "9000", "nan"):
        assert set(faults(load, with_site(source + hours))) == {"sites.demo.reconcile_hours"}
