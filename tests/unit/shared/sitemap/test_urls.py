"""Every URL has one stored form, and that form is safe to publish (PROTOCOL L1-L7)."""

from __future__ import annotations

import re
import sys
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import UrlError
from shared.sitemap.urls import MAX_LENGTH, Base, absolute, canonical

ROOT = Base.parse("https://www.example.com")
CATALOG = Base.parse("https://www.example.com/catalog/")
PORT = Base.parse("http://cms.local:8080/")
UMLAUT = Base.parse("https://b\u00fccher.example/")
BASES = (ROOT, CATALOG, PORT, UMLAUT)

# fmt: off
PIECES = [
    "http", "https", "HTTPS", ":", "/", "//", "?", "#", "@", "%", "%2e", "%2E", "%2f", "%zz",
    "%c3%bc", ".", "..", "\\", "\t", "\n", " ", "\x7f", "\x85", "[", "]", "|", "^", "a", "B", "~",
    "+", "&", "www.example.com", "WWW.EXAMPLE.COM", "www.example.com.", "cms.local", "catalog",
    "xn--a", ":8080", ":443", ":80", "b\xfccher.example", "\u3002", "\uff0e", "\xe4", "\U0001f600",
    "\ud800", "\u202e", "\xad", "\u0130", "\u212a",
]
# fmt: on
url_like = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
below_a_base = st.builds(
    lambda base, rest: base.prefix + rest, st.sampled_from(BASES), url_like | st.text()
)


@pytest.mark.parametrize(
    ("text", "origin", "path"),
    [
        ("https://www.example.com", "https://www.example.com", "/"),
        ("HTTPS://WWW.Example.com:443/", "https://www.example.com", "/"),
        ("http://cms.local:8080/shop", "http://cms.local:8080", "/shop/"),
        ("http://cms.local:/", "http://cms.local", "/"),
        ("http://cms.local:443", "http://cms.local:443", "/"),
        ("https://B\u00dcCHER.example/\u00fc/", "https://xn--bcher-kva.example", "/%C3%BC/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example", "/"),
        ("http://my_host.local/", "http://my_host.local", "/"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000", "/"),
    ],
)
def test_a_base_is_an_origin_and_a_directory(text: str, origin: str, path: str) -> None:
    assert Base(origin, path) == Base.parse(text)
    assert Base.parse(text) == Base.parse(origin + path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "www.example.com",
        "//www.example.com",
        "ftp://www.example.com/",
        "https://",
        "https:///",
        "https://:443/",
        "https://www.example.com/?a=1",
        "https://www.example.com/?",
        "https://www.example.com/#",
        "https://www.example.com:0/",
        "https://www.example.com:65536/",
        "https://www.example.com:\u0664\u0664\u0663/",
        "https://user@www.example.com/",
        "https://www..example.com/",
        "https://.example.com/",
        "https://-a.example.com/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://[1.2.3.4]/",
        "https://[]/",
        "https://a[::1]/",
        "https://ex%61mple.com/",
        "https://i\u2764.example/",
        "https://" + "a" * 64 + ".example/",
        "https://" + "\u00fc" * 70 + ".example/",
        "https://" + "a." * 127 + "example/",
        "https://" + "\u00fc." * 100 + "example/",
        "https://www.example.com/" + "a" * MAX_LENGTH,
    ],
)
def test_a_base_that_names_no_directory_of_a_host_is_refused(text: str) -> None:
    with pytest.raises(UrlError):
        Base.parse(text)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("HTTPS://[2001:DB8:0:0::1]:443/", "https://[2001:db8::1]"),
        ("https://[::ffff:192.0.2.1]/", "https://[::ffff:192.0.2.1]"),
    ],
)
def test_an_ipv6_literal_is_a_host_in_its_shortest_form(text: str, origin: str) -> None:
    """RFC 5952; PROTOCOL L3."""
    base = Base.parse(text)

    assert base.origin == origin
    assert canonical(f"{text}a", base) == f"{origin}/a" == absolute(f"{text}a")


@pytest.mark.parametrize(
    ("host", "remedy"),
    [
        ("www\u3002example.com", "ASCII full stops"),
        ("www\uff0eexample.com", "ASCII full stops"),
        ("www\uff61example.com", "ASCII full stops"),
        ("\u00fc" * 100_000, "253 characters$"),
        ("\u00fc." * 120 + "com", "253 characters in punycode$"),
    ],
)
def test_a_refused_host_comes_back_with_its_remedy(host: str, remedy: str) -> None:
    with pytest.raises(UrlError, match=remedy):
        Base.parse(f"https://{host}/")


def test_a_file_lies_in_the_directory_of_its_base() -> None:
    assert CATALOG.url("sitemap.xml") == "https://www.example.com/catalog/sitemap.xml"


@pytest.mark.parametrize(
    ("rest", "stored"),
    [
        ("", ""),
        ("a/b.html?x=1&y=2", "a/b.html?x=1&y=2"),
        ("#top", ""),
        ("a#", "a"),
        ("a?#x%zz", "a?"),
        ("a b?c d", "a%20b?c%20d"),
        ("\u00fc/\u043f?q=\u65e5", "%C3%BC/%D0%BF?q=%E6%97%A5"),
        ("%d0%bf%C3%bc?q=%c3%bc", "%D0%BF%C3%BC?q=%C3%BC"),
        ("%25C3%25BC", "%25C3%25BC"),
        ("100%25", "100%25"),
        ("%7Euser/%41", "%7Euser/%41"),
        ("~user/a+b;c=1,2@3:4!$&'()*", "~user/a+b;c=1,2@3:4!$&'()*"),
        ('a"<>^`{|}', "a%22%3C%3E%5E%60%7B%7C%7D"),
        ("a[1]?f[a]=b", "a%5B1%5D?f%5Ba%5D=b"),
        (".well-known/x", ".well-known/x"),
        ("...", "..."),
        ("a..b/.c/d.", "a..b/.c/d."),
        ("?a=/../b", "?a=/../b"),
        ("a%2F..%2Fb", "a%2F..%2Fb"),
        ("//a", "//a"),
        ("a//b", "a//b"),
        ("\U0001f600", "%F0%9F%98%80"),
    ],
)
def test_path_and_query_are_stored_in_one_escaped_form(rest: str, stored: str) -> None:
    assert ROOT.prefix + stored == canonical(ROOT.prefix + rest, ROOT)


@pytest.mark.parametrize(
    ("loc", "base"),
    [
        ("https://www.example.com", ROOT),
        ("https://www.example.com?a", ROOT),
        ("HTTPS://WWW.EXAMPLE.COM/", ROOT),
        ("https://www.example.com:443/", ROOT),
        ("https://www.example.com:/", ROOT),
        ("http://CMS.local:08080/x", PORT),
        ("https://b\u00fccher.example/", UMLAUT),
        ("https://B\u00dcCHER.EXAMPLE/", UMLAUT),
        ("https://bu\u0308cher.example/", UMLAUT),
        ("https://XN--BCHER-KVA.example/", UMLAUT),
    ],
)
def test_every_spelling_of_the_host_is_stored_as_the_origin_of_the_base(
    loc: str, base: Base
) -> None:
    assert canonical(loc, base).startswith(base.prefix)


@pytest.mark.parametrize(
    ("loc", "rule"),
    [
        ("", "L1"),
        ("/a", "L1"),
        ("//www.example.com/a", "L1"),
        ("www.example.com/a", "L1"),
        ("ftp://www.example.com/a", "L1"),
        ("javascript:alert(1)", "L1"),
        ("https:www.example.com/", "L1"),
        ("https:/www.example.com/", "L1"),
        ("https:///www.example.com/", "L1"),
        ("\ufeffhttps://www.example.com/", "L1"),
        (" https://www.example.com/", "L3"),
        ("https://www.example.com/ ", "L3"),
        ("https://www.example.com/\n", "L3"),
        ("https://www.example.com/\u00a0", "L3"),
        ("https://www.example.com/a\tb", "L3"),
        ("https://www.exa\nmple.com/", "L3"),
        ("https://www.example.com/\x00", "L3"),
        ("https://www.example.com/a\x7fb", "L3"),
        ("https://www.example.com/a\x85b", "L3"),
        ("https://www.example.com/\ud800", "L3"),
        ("https://www.example.com/#\ud800", "L3"),
        ("https://www.example.com\\@evil.example/", "L3"),
        ("https://www.example.com/a\\b", "L3"),
        ("https://www.example.com@evil.example/", "L4"),
        ("https://user:pass@www.example.com/", "L4"),
        ("https://@www.example.com/", "L4"),
        ("https://www.example.com./", "L3"),
        ("https://www..example.com/", "L3"),
        ("https://www\u3002example.com/", "L3"),
        ("https://www\uff0eexample.com/", "L3"),
        ("https://www\uff61example.com/", "L3"),
        ("https://www.example.com%2eevil.example/", "L3"),
        ("https://www.example.com%00/", "L3"),
        ("https://www.example.com:8443/", "L5"),
        ("https://www.example.com:80/", "L5"),
        ("http://www.example.com/", "L5"),
        ("http://www.example.com:443/", "L5"),
        ("https://example.com/", "L5"),
        ("https://www.example.com.evil.example/", "L5"),
        ("https://evil.example/https://www.example.com/", "L5"),
        ("https://evil.example?https://www.example.com/", "L5"),
        ("https://evil.example#@www.example.com/", "L5"),
        ("https://www.ex\u0430mple.com/", "L5"),
        ("https://www.example.com/.", "L3"),
        ("https://www.example.com/a/../b", "L3"),
        ("https://www.example.com/a/%2e%2E/b", "L3"),
        ("https://www.example.com/a/.%2e", "L3"),
        ("https://www.example.com/a/%2E%2E/b", "L3"),
        ("https://www.example.com/%2E", "L3"),
        ("https://www.example.com/./a?b", "L3"),
        ("https://www.example.com/%", "L3"),
        ("https://www.example.com/%zz", "L3"),
        ("https://www.example.com/%c", "L3"),
        ("https://www.example.com/?a=%\u0661\u0661", "L3"),
    ],
)
def test_a_url_of_another_place_or_another_reading_is_refused(loc: str, rule: str) -> None:
    with pytest.raises(UrlError) as caught:
        canonical(loc, ROOT)

    assert rule == caught.value.rule


@pytest.mark.parametrize("path", ["/", "/catalog", "/Catalog/a", "/catalogue/", "/x/catalog/"])
def test_a_page_outside_the_directory_of_the_sitemap_is_refused(path: str) -> None:
    with pytest.raises(UrlError, match="must start with /catalog/") as caught:
        canonical(CATALOG.origin + path, CATALOG)

    assert caught.value.rule == "L6"


@pytest.mark.parametrize("unit", ["a", " ", "\u00fc", "\U0001f600", "%c3"])
def test_2047_characters_after_escaping_are_the_last_that_fit(unit: str) -> None:
    escaped = len(canonical(ROOT.prefix + unit + "a", ROOT)) - len(ROOT.prefix) - 1
    count, rest = divmod(MAX_LENGTH - len(ROOT.prefix) - 1, escaped)
    loc = ROOT.prefix + unit * count + "a" * (rest + 1)

    assert len(canonical(loc, ROOT)) == 2_047
    with pytest.raises(UrlError) as caught:
        canonical(loc + "a", ROOT)
    assert caught.value.rule == "L2"


def test_a_fragment_does_not_count_to_the_length() -> None:
    loc = ROOT.prefix + "a" * (MAX_LENGTH - len(ROOT.prefix))

    assert loc == canonical(loc + "#" + "b" * 5_000, ROOT)


@given(st.text() | url_like | below_a_base, st.sampled_from(BASES))
def test_any_text_is_a_url_of_the_base_or_a_url_error(loc: str, base: Base) -> None:
    try:
        stored = canonical(loc, base)
    except UrlError:
        return
    parsed = urlsplit(stored)

    assert stored == canonical(stored, base)
    assert re.fullmatch(r"[\x21-\x7e]{1,2047}", stored)
    assert base.origin == f"{parsed.scheme}://{parsed.netloc}"
    assert parsed.path.startswith(base.path)
    assert parsed.fragment == ""


@given(st.text() | url_like)
def test_any_text_is_a_base_or_a_url_error(text: str) -> None:
    try:
        base = Base.parse(text)
    except UrlError:
        return

    assert base == Base.parse(base.prefix)
    assert base.prefix == canonical(base.prefix, base)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\\#?%/.")))
def test_escaping_keeps_the_meaning(segment: str) -> None:
    stored = canonical(f"{ROOT.prefix}{segment}-", ROOT)

    assert f"{ROOT.prefix}{segment}-" == unquote(stored)


@given(st.integers(0x80, sys.maxunicode).map(chr))
def test_no_character_in_a_host_reaches_another_host_unseen(character: str) -> None:
    try:
        stored = canonical(f"https://www.exam{character}ple.com/", ROOT)
    except UrlError:
        return

    assert f"{ROOT.origin}/" == stored
