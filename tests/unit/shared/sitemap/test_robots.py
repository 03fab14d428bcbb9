"""Nothing but our own lines in robots.txt is ever touched (PROTOCOL R1-R11, RELIABILITY T18)."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.robotparser import RobotFileParser

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from protego import Protego

from shared.errors import RobotsError
from shared.sitemap.robots import MAX_BYTES, edit
from tests.corpus import CORPUS

ONE = "https://www.example.com/sitemap.xml"
TWO = "https://www.example.com/sitemap-2.xml"
RULES = b"User-agent: *\nDisallow: /private/\n"
BLOCK = f"# BEGIN sitemapd\nSitemap: {ONE}\n# END sitemapd\n".encode()

AGENTS = ["Googlebot", "bingbot", "a", "b", "other"]
PATHS = ["/", "/a", "/private/x", "/b?c=d", "/sitemap.xml"]
LINES = [
    "User-agent: *", "User-agent: a", "user-agent: B", "Disallow: /", "Disallow: /a", "Disallow:",
    "Allow: /private/", "Disallow: /b?c=", "Crawl-delay: 2", "Host: www.example.com", "", "# note",
    "Sitemap: https://www.example.com/other.xml", f"SITE-MAP: {TWO}", "nonsense", " ",
    "\u00fc\u2028", "# BEGIN sitemapd-blog", "# END other",
]  # fmt: skip

robots_files = st.builds(
    lambda bom, lines, last: (bom + "".join(lines) + last).encode(),
    st.sampled_from(["", "\ufeff"]),
    st.lists(
        st.builds(str.__add__, st.sampled_from(LINES), st.sampled_from(["\n", "\r\n", "\n", "\r"]))
    ),
    st.sampled_from([*LINES, ""]),
)
text_files = st.text().map(lambda text: text.replace("\x00", "").encode())
urls = st.lists(st.sampled_from([ONE, TWO, "http://a.example/s?b=%23&c='\""]), min_size=1)


def corpus_files() -> list[Path]:
    return sorted(CORPUS.glob("robots-*.txt"))


def decisions(content: bytes) -> list[object]:
    """What two independent parsers let each agent fetch."""
    protego = Protego.parse(content.decode())
    stdlib = RobotFileParser()
    stdlib.parse(content.decode().splitlines())
    return [
        (protego.can_fetch(path, agent), stdlib.can_fetch(agent, path), protego.crawl_delay(agent))
        for agent in AGENTS
        for path in PATHS
    ]


def check_appended(old: bytes, new: bytes, sitemaps: list[str]) -> None:
    """`new` is `old`, a line break where its last line had none, and our block."""
    seen = list(Protego.parse(new.decode()).sitemaps)

    assert new.startswith(old)
    assert re.fullmatch(
        rb"(\r?\n)?# BEGIN sitemapd(, including the line break before)?\r?\n"
        rb"(Sitemap: \S+\r?\n)+# END sitemapd\r?\n|",
        new.removeprefix(old),
    )
    assert set(sitemaps) <= set(seen)
    assert all(seen.count(url) <= 1 for url in sitemaps if url.encode() not in old)
    assert decisions(old) == decisions(new)
    assert new == edit(new, sitemaps)
    assert old == edit(new, [])


@settings(max_examples=600)
@given(robots_files | text_files, urls)
def test_all_bytes_of_any_file_stay_and_every_rule_decides_as_before(
    old: bytes, sitemaps: list[str]
) -> None:
    assume(b" sitemapd\n" not in old)

    check_appended(old, edit(old, sitemaps), sitemaps)


def test_real_files_keep_their_bytes_and_rules() -> None:
    files = corpus_files()
    if not files:
        pytest.skip(f"no robots-*.txt in {CORPUS}; point SITEMAPD_CORPUS at the corpus")

    for file in files:
        old = file.read_bytes()
        check_appended(old, edit(old, [ONE, TWO]), [ONE, TWO])


@settings(max_examples=300)
@given(robots_files, robots_files, urls, urls)
def test_an_edit_of_a_block_between_other_lines_changes_the_block_only(
    before: bytes, after: bytes, first: list[str], second: list[str]
) -> None:
    head = edit(before, first)
    marker = re.search(rb"# BEGIN sitemapd(?!-)", head)
    assume(marker)
    assert marker
    prefix = head[: marker.start()]
    new = edit(head + after, second)

    assert new.startswith(prefix)
    assert new.endswith(after)
    assert new == edit(new, second)
    assert edit(new, []) == (prefix + after if after else before)


@given(st.binary(), st.lists(st.text()), st.text())
def test_any_bytes_are_edited_or_refused_by_our_error(
    old: bytes, sitemaps: list[str], owner: str
) -> None:
    for name in ("sitemapd", owner):
        try:
            edit(old, sitemaps, owner=name)
        except RobotsError:
            continue


def test_a_missing_file_becomes_our_block_alone_and_allows_everything() -> None:
    new = edit(None, [ONE])

    assert new == BLOCK
    assert Protego.parse(new.decode()).can_fetch("/any", "any")
    assert edit(new, []) == b""
    assert edit(None, []) == b""


def test_a_last_line_without_its_break_is_ended_first() -> None:
    old = RULES.rstrip(b"\n")
    new = edit(old, [ONE])

    assert new == RULES + BLOCK.replace(
        b"sitemapd\nS", b"sitemapd, including the line break before\nS"
    )
    assert old == edit(new, [])


def test_our_line_break_stays_while_text_added_behind_the_block_needs_it() -> None:
    new = edit(b"Disallow: /a", [ONE]) + b"Disallow: /b\n"

    assert edit(new, []) == b"Disallow: /a\nDisallow: /b\n"


@pytest.mark.parametrize(
    ("old", "newline"),
    [
        (b"", b"\n"),
        (b"a", b"\n"),
        (b"a\n", b"\n"),
        (b"a\r\n", b"\r\n"),
        (b"a\r\nb", b"\r\n"),
        (b"a\r\nb\n", b"\n"),
        (b"a\r\nb\nc\n", b"\n"),
        (b"a\r\nb\r\nc\n", b"\r\n"),
        (b"a\rb\r", b"\n"),
    ],
)
def test_our_lines_end_as_most_lines_of_the_file_do(old: bytes, newline: bytes) -> None:
    new = edit(old, [ONE])

    assert new.endswith(f"Sitemap: {ONE}".encode() + newline + b"# END sitemapd" + newline)
    assert old == edit(new, [])


def test_a_changed_list_replaces_the_block_where_it_stands() -> None:
    old = RULES + BLOCK + b"\nUser-agent: a\nDisallow: /\n"

    assert old.replace(ONE.encode(), TWO.encode()) == edit(old, [TWO])
    assert old.replace(BLOCK, b"") == edit(old, [])


def test_a_sitemap_given_twice_is_listed_once_and_in_order() -> None:
    listed = list(Protego.parse(edit(RULES, [TWO, ONE, TWO]).decode()).sitemaps)

    assert listed == [TWO, ONE]


@pytest.mark.parametrize(
    "line", ["Sitemap: {}", " SITEMAP :{}", "site-map:\t{}\t# x", "sItEmAp:{}#"]
)
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
def test_a_sitemap_named_outside_our_block_is_not_named_again(line: str, end: str) -> None:
    old = RULES + (line.format(ONE) + end).encode()

    assert old == edit(old, [ONE])
    assert list(Protego.parse(edit(old, [ONE, TWO]).decode()).sitemaps).count(ONE) == 1


@pytest.mark.parametrize(
    "line", [f"Sitemap: {ONE}.gz", f"# Sitemap: {ONE}", f"Disallow: {ONE}", f"Sitemap: x {ONE}"]
)
def test_a_line_that_only_resembles_our_sitemap_does_not_name_it(line: str) -> None:
    new = edit(line.encode(), [ONE])

    assert ONE in Protego.parse(new.decode()).sitemaps


def test_a_line_taken_over_by_the_owner_of_the_site_leaves_our_block() -> None:
    theirs = f"Sitemap: {ONE}\n".encode()

    assert RULES + theirs == edit(RULES + BLOCK + theirs, [ONE])


@pytest.mark.parametrize("old", [b"", b"Sitemap: " + ONE.encode() + b"\n", RULES])
def test_a_byte_order_mark_stays_and_hides_no_line_of_ours(old: bytes) -> None:
    new = edit(b"\xef\xbb\xbf" + old, [ONE])

    assert new.startswith(b"\xef\xbb\xbf" + old)
    assert ONE in Protego.parse(new.decode()).sitemaps
    assert new.splitlines()[0] == (b"\xef\xbb\xbf" + old).splitlines()[0]


def test_a_byte_order_mark_put_before_our_block_stays_outside_of_it() -> None:
    assert edit(b"\xef\xbb\xbf" + BLOCK, [TWO]) == b"\xef\xbb\xbf" + edit(None, [TWO])
    assert edit(b"\xef\xbb\xbf" + BLOCK, []) == b"\xef\xbb\xbf"


def test_two_owners_keep_a_block_each() -> None:
    both = edit(edit(RULES, [ONE]), [TWO], owner="sitemapd-blog")

    assert both.startswith(RULES + BLOCK)
    assert edit(RULES, [ONE]) == edit(both, [], owner="sitemapd-blog")
    assert edit(RULES, [TWO], owner="sitemapd-blog") == edit(both, [])


@pytest.mark.parametrize(
    "damaged",
    [
        b"# BEGIN sitemapd\n",
        b"# END sitemapd",
        b"# END sitemapd\n# BEGIN sitemapd\n",
        BLOCK + BLOCK,
        b"# BEGIN sitemapd\n" + BLOCK,
        BLOCK + b"# END sitemapd\n",
        b"# BEGIN sitemapd\n" + BLOCK + b"# END sitemapd\n",
        b"\xef\xbb\xbf# BEGIN sitemapd\n",
    ],
)
@pytest.mark.parametrize("sitemaps", [[], [ONE]])
def test_a_damaged_block_is_left_to_people(damaged: bytes, sitemaps: list[str]) -> None:
    with pytest.raises(RobotsError, match="do not pair"):
        edit(RULES + damaged if damaged[:1] == b"#" else damaged, sitemaps)


@pytest.mark.parametrize("line", [b"Disallow: /x", b"User-agent: a", b"x"])
def test_a_rule_written_into_our_block_is_never_thrown_away(line: bytes) -> None:
    with pytest.raises(RobotsError, match="move the rules"):
        edit(RULES + BLOCK.replace(b"# END", line + b"\n# END"), [ONE])


@pytest.mark.parametrize(
    "old",
    [b"\xff\xfea\x00", "Disallow: /\u00fc".encode("latin-1"), "User-agent: *".encode("utf-16-le")],
)
def test_a_file_that_is_no_utf_8_is_refused(old: bytes) -> None:
    with pytest.raises(RobotsError, match="save it as UTF-8"):
        edit(old, [ONE])


def test_512000_bytes_are_the_last_that_crawlers_read() -> None:
    room = MAX_BYTES - len(BLOCK)
    fits = b"#" * (room - 1) + b"\n"

    assert MAX_BYTES == 512_000
    assert len(edit(fits, [ONE])) == MAX_BYTES
    with pytest.raises(RobotsError, match="shorten"):
        edit(b"#" + fits, [ONE])
    assert edit(b"#" * MAX_BYTES, []) == b"#" * MAX_BYTES
    with pytest.raises(RobotsError, match="shorten"):
        edit(b"#" * (MAX_BYTES + 1), [])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/sitemap.xml",
        "ftp://www.example.com/sitemap.xml",
        "https://",
        f"{ONE}\nDisallow: /",
        f"{ONE}\rDisallow: /",
        f"{ONE}\n",
        f"{ONE}#a",
        f"{ONE} a",
        f" {ONE}",
        f"{ONE}\t",
        f"{ONE}\x00",
        f"{ONE}\x7f",
        f"{ONE}\x85Disallow: /",
        f"{ONE}\u2028Disallow: /",
        "https://b\u00fccher.example/sitemap.xml",
        "https://www.example.com/\ud800",
        "https://www.example.com/" + "a" * 2_024,
    ],
)
def test_a_url_that_could_become_another_line_is_refused(url: str) -> None:
    with pytest.raises(RobotsError, match="cannot be listed"):
        edit(RULES, [ONE, url])


def test_the_longest_url_of_the_protocol_can_be_listed() -> None:
    url = "https://www.example.com/" + "a" * 2_023

    assert [url] == list(Protego.parse(edit(RULES, [url]).decode()).sitemaps)


@pytest.mark.parametrize("owner", ["", "a b", "a\nDisallow: /", "\u00fc", "a" * 65, ".*", "a\n"])
def test_an_owner_that_could_become_another_line_is_refused(owner: str) -> None:
    with pytest.raises(RobotsError, match="owner"):
        edit(RULES, [ONE], owner=owner)
