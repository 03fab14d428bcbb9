"""Permalinks: fields of a payload in, the address of a page out, or what is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import UrlError
from shared.events.permalinks import PermalinkError, check, lookup, pattern, render
from shared.sitemap.urls import Base, canonical

FIELDS = {
    "slug": "a-b",
    "n": 7,
    "category": {"slug": "news"},
    "tags": [{"slug": "first"}],
    "published_at": "2026-03-09T23:30:00-05:00",
    "path": "/x/y/",
    "odd": "a b?c#d%e/ü",
    "yes": True,
    "empty": " ",
    "none": None,
}
BASE = Base.parse("https://www.example.com")


@pytest.mark.parametrize(
    ("template", "made"),
    [
        ("/{slug}/", "/a-b/"),
        ("/{category.slug}/{n}", "/news/7"),
        ("/{tags.0.slug}", "/first"),
        ("/{published_at:%Y/%m/%d}/{slug}", "/2026/03/09/a-b"),
        ("/{published_at:%y%j}", "/26068"),
        ("/blog/{path}", "/blog/x/y/"),
        ("https://other.example/{slug}", "https://other.example/a-b"),
        ("/{odd}", "/a%20b%3Fc%23d%25e/%C3%BC"),
        ("/fixed", "/fixed"),
    ],
)
def test_fields_take_their_places(template, made):
    assert render(template, FIELDS) == made


@pytest.mark.parametrize("template", ["/{gone}", "/{category.gone}", "/{slug.x}", "/{yes}",
                                      "/{none}", "/{empty}", "/{category}",
                                      "/{tags.9.slug}"])  # fmt: skip
def test_a_field_that_is_missing_is_named(template):
    with pytest.raises(PermalinkError, match=template[2:-1]):
        render(template, FIELDS)


def test_what_is_no_date_has_no_year():
    with pytest.raises(PermalinkError, match="no date"):
        render("/{slug:%Y}", FIELDS)


@pytest.mark.parametrize("template", ["", "slug", "{slug}", "/{}", "/{a b}", "/{slug", "/slug}",
                                      "/{d:%S}", "/{d:%}", "/{d:}", "ftp://x/{slug}"])  # fmt: skip
def test_a_template_that_is_none_is_refused(template):
    with pytest.raises(ValueError, match=r"must|field|form"):
        check(template)


@given(st.text(), st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_any_template_and_fields_have_an_address_or_an_error(template, fields):
    try:
        made = render("/" + template, fields)
    except (ValueError, PermalinkError):
        return
    assert made.startswith("/")


@given(st.text(min_size=1))
def test_a_slug_can_leave_neither_its_place_nor_the_site(slug):
    try:
        made = render("/blog/{slug}", {"slug": slug})
    except PermalinkError:
        return
    assert made.startswith("/blog/")
    assert not set(made) & set("?#\\")
    try:
        loc = canonical(BASE.origin + made, BASE)
    except UrlError:
        return
    assert loc.startswith("https://www.example.com/blog/")


@pytest.mark.parametrize(
    ("text", "path", "found"),
    [
        ("content/{lang}/{slug}.md", "content/de/a.md", {"lang": "de", "slug": "a"}),
        ("content/{slug}.md", "content/a/b.md", None),
        ("content/{slug:path}.md", "content/a/b.md", {"slug": "a/b"}),
        ("docs/index.md", "docs/index.md", {}),
        ("docs/a+b.md", "docs/aab.md", None),
    ],
)
def test_patterns_tell_which_files_are_pages(text, path, found):
    match = pattern(text).fullmatch(path)

    assert (match and match.groupdict()) == found


@pytest.mark.parametrize("text", ["{a.b}.md", "{a}/{a}", "{a:x}", "{a", "{1a}"])
def test_a_pattern_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="write"):
        pattern(text)


def test_nothing_is_looked_up_where_nothing_is():
    assert lookup([1], "0") == 1
    assert lookup([1], "x") is None
    assert lookup("text", "0") is None
