"""The published forms of a list of pages: encodings, gzip, feeds, text, indexes, any bytes."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.errors import SourceError
from tests.unit.worker.sources.reading import NS, Put, split, urlset
from worker.sources import PARTIAL, Note, RecordRefusal, SourceRecord, estimate, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "iso-8859-1"])
def test_other_encodings_are_read(put: Put, encoding: str) -> None:
    declared = {"utf-8-sig": "utf-8", "utf-16-le": "utf-16"}.get(encoding, encoding)
    text = urlset("<loc>https://a.example/é</loc>").replace("UTF-8", declared)

    assert split(put(text.encode(encoding)))[:2] == (["https://a.example/é"], [])


def test_an_encoding_that_is_no_character_encoding_is_not_looked_up(put: Put) -> None:
    text = urlset("<loc>https://a.example/</loc>").replace("UTF-8", "zip")

    assert split(put(text)) == (["https://a.example/"], [], [("s.xml", "F3")])


def test_gzip_is_known_by_content_not_by_name(put: Put) -> None:
    text = urlset("<loc>https://a.example/</loc>")

    assert split(put(gzip.compress(text.encode()))) == (["https://a.example/"], [], [])
    assert split(put(text, "s.xml.gz")) == (["https://a.example/"], [], [])


def test_broken_gzip_gives_what_came_before(put: Put) -> None:
    entries = [f"<loc>https://a.example/{n * 7919 % 100_003}</loc>" for n in range(20_000)]
    data = gzip.compress(urlset(*entries).encode())
    locs, refusals, _ = split(put(data[: len(data) // 2]))

    assert 5_000 < len(locs) < 15_000
    assert {"F4", "F9"} == {rule for _, rule in refusals}
    twice = gzip.compress(gzip.compress(urlset().encode()))
    assert split(put(twice)) == ([], [("s.xml", "F9")], [])


PAGE = "<loc>https://a.example/1</loc>"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: data[:-8] + bytes(8), "incorrect data check"),
        (lambda data: data[:-4] + b"\1\1\1\1", "incorrect length check"),
        (lambda data: data[:-8], "ends in the middle"),
        (lambda data: data[:-1], "ends in the middle"),
        (lambda data: data + b"<!-- served by x -->", "no gzip"),
        (lambda data: data + bytes(70_000) + b"x", "no gzip"),
        (lambda data: data + b"\x1f", "no gzip"),
        (lambda data: data + b"\x1f\x8b\x08", "ends in the middle"),
    ],
)
@pytest.mark.parametrize("kind", ["sitemap", "csv", "ndjson"])
def test_gzip_that_is_damaged_at_its_end_gives_all_that_decompresses(
    put: Put, spoil: Callable[[bytes], bytes], said: str, kind: str
) -> None:
    """PROTOCOL F9: every page comes, and the source is said to be damaged."""
    text = {
        "sitemap": urlset(PAGE),
        "csv": "loc\nhttps://a.example/1\n",
        "ndjson": '{"loc": "https://a.example/1"}\n',
    }
    items = list(read(f"{kind}:{put(spoil(gzip.compress(text[kind].encode())))}"))

    assert [item.loc for item in items if isinstance(item, SourceRecord)] == ["https://a.example/1"]
    (refusal,) = [item for item in items if isinstance(item, RecordRefusal)]
    assert refusal.rule == "F9"
    assert said in refusal.detail


def test_gzip_that_is_damaged_in_its_middle_gives_all_before_the_damage(put: Put) -> None:
    """A stored block of 65,535 bytes says its length twice; the second one's is made wrong."""
    text = urlset(*(f"<loc>https://a.example/{n:05}</loc>" for n in range(3_000))).encode()
    packer = zlib.compressobj(0, wbits=31)
    first = packer.compress(text[:60_000]) + packer.flush(zlib.Z_FULL_FLUSH)
    locs, refusals, _ = split(put(first + b"\x00\x01\x00\x01\x00" + text[60_000:]))

    assert len(locs) == text[:60_000].count(b"</url>")
    assert {("s.xml", "F9")} <= set(refusals)


def test_several_gzip_members_and_zeros_behind_them_are_one_document(put: Put) -> None:
    """RFC 1952 2.2; tapes and some archivers fill up with zeros."""
    text = urlset(PAGE, "<loc>https://a.example/2</loc>").encode()
    members = b"".join(gzip.compress(text[at : at + 40]) for at in range(0, len(text), 40))

    expected = (["https://a.example/1", "https://a.example/2"], [], [])
    assert split(put(members)) == expected
    assert split(put(members + bytes(200_000))) == expected


def test_gzip_of_which_nothing_decompresses_is_called_broken_not_empty(put: Put) -> None:
    with pytest.raises(SourceError, match=r"gives nothing: broken gzip"):
        list(read(put(b"\x1f\x8b\x08\x00")))


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_lines_end_with_any_of_the_three_ends(put: Put, end: str) -> None:
    locs = [f"https://a.example/{n}" for n in range(20_000)]
    rows = [f'{{"loc": "{loc}"}}' for loc in locs]

    for kind, content in {"sitemap": locs, "csv": ["loc", *locs], "ndjson": rows}.items():
        found = list(read(f"{kind}:{put(end.join(content))}"))
        assert [item.loc for item in found if isinstance(item, SourceRecord)] == locs
        assert found[-1].where.endswith(f"#{len(content) - (kind == 'csv')}")


def test_an_rss_item_without_a_link_is_at_its_permanent_guid(put: Put) -> None:
    """RSS 2.0: a guid is an address unless isPermaLink says that it is none."""
    items = [
        "<guid>https://a.example/1</guid>",
        '<guid isPermaLink="true"> https://a.example/2 </guid><link/>',
        "<guid>https://a.example/no</guid><link>https://a.example/3</link>",
        '<guid isPermaLink="false">https://a.example/no</guid>',
        "<guid>tag:a.example,2026:5</guid>",
    ]
    body = "".join(f"<item>{item}</item>" for item in items)
    locs, refusals, _ = split(put(f'<rss version="2.0"><channel>{body}</channel></rss>'))

    assert locs == [f"https://a.example/{n}" for n in (1, 2, 3)]
    assert [where for where, _ in refusals] == ["s.xml#4", "s.xml#5"]


def test_atom_links_without_or_with_alternate_rel_are_taken(put: Put) -> None:
    feed = (
        '<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://a.example/"/>'
        '<entry><link rel="self" href="no"/><link rel="alternate" href=" https://a.example/1 "/>'
        "<updated>2026-01-01T00:00:00Z</updated></entry>"
        '<entry><link href="https://a.example/2"/></entry><entry><id>x</id></entry></feed>'
    )
    first, second, third, note = read(put(feed))

    assert SourceRecord("https://a.example/1", "s.xml#1", lastmod="2026-01-01T00:00:00Z") == first
    assert SourceRecord("https://a.example/2", "s.xml#2") == second
    assert isinstance(third, RecordRefusal)
    assert isinstance(note, Note)
    assert note.rule == PARTIAL  # a feed names the newest pages only


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("Fri, 19 Dec 2025 09:19:56 +0100", "2025-12-19T09:19:56+01:00"),
        ("Fri, 19 Dec 2025 09:19:56 GMT", "2025-12-19T09:19:56+00:00"),
        ("Fri, 19 Dec 2025 09:19:56 -0000", "2025-12-19T09:19:56+00:00"),
        ("Fri, 19 Dec 2025 09:19:56", None),
        ("yesterday", None),
        ("Fri, 99 Dec 2025 09:19:56 GMT", None),
    ],
)
def test_rss_dates_are_taken_where_their_zone_is_known(
    put: Put, stated: str, expected: str | None
) -> None:
    rss = (
        '<rss version="2.0"><channel><link>https://a.example/</link><item>'
        f"<link>https://a.example/1</link><pubDate>{stated}</pubDate></item></channel></rss>"
    )
    record = next(read(put(rss)))

    assert isinstance(record, SourceRecord)
    assert ("https://a.example/1", expected) == (record.loc, record.lastmod)


def test_a_text_list_gives_its_addresses_and_refuses_other_lines(put: Put) -> None:
    text = "\ufeffhttps://a.example/?a=1&b=2\r\n\r\nhttps://a.example/2\n# note\n".encode()
    locs, refusals, _ = split(put(text + b"https://a.example/\xff\n"))

    assert locs == ["https://a.example/?a=1&b=2", "https://a.example/2"]
    assert refusals == [("s.xml#4", "F10"), ("s.xml#5", "F10")]


def test_an_index_on_disk_finds_its_files_beside_it(put: Put, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    put(urlset("<loc>https://a.example/1</loc>"), "one.xml")
    put(gzip.compress(urlset("<loc>https://a.example/2</loc>").encode()), "deep/two.xml.gz")
    put(f"<sitemapindex {NS}><sitemap><loc>one.xml</loc></sitemap></sitemapindex>", "nested.xml")
    children = [
        "https://a.example/one.xml",
        "https://a.example/x/deep/two.xml",
        "https://a.example/../../etc/hostname",
        "nested.xml",
        "https://a.example/missing.xml",
        "https://a.example/one.xml",
        "/one.xml?page=2",
        "https://a.exam[ple/one.xml",
    ]
    listed = "".join(f"<sitemap><loc>{child}</loc></sitemap>" for child in children)
    index = put(f"<sitemapindex {NS}>{listed}</sitemapindex>", "index.xml")

    assert split(index) == (
        ["https://a.example/1", "https://a.example/2"],
        [
            ("index.xml#3", "N4"),
            ("nested.xml", "N1"),
            ("index.xml#5", "N4"),
            ("index.xml#6", "N4"),
            ("index.xml#7", "N4"),
            ("index.xml#8", "N4"),
        ],
        [],
    )
    assert estimate(index) == 2


def test_an_unknown_root_is_refused_by_its_name(put: Put) -> None:
    (refusal,) = read(put("<opml version='2.0'></opml>"))

    assert isinstance(refusal, RecordRefusal)
    assert "opml" in refusal.detail


@pytest.mark.parametrize("content", [b"", b" \n", b"\x89PNG\r\n\x1a\n\0\0", b"hello"])
def test_a_source_with_nothing_readable_is_an_error(put: Put, content: bytes) -> None:
    with pytest.raises(SourceError):
        list(read(put(content)))


def test_a_missing_file_and_a_directory_are_errors(tmp_path: Path) -> None:
    for source in (tmp_path / "none.xml", tmp_path, "sitemap:\0"):
        with pytest.raises(SourceError):
            list(read(str(source)))
    assert estimate(str(tmp_path / "none.xml")) is None


FRAGMENTS = st.sampled_from(
    b"<url> </url> <loc> </loc> https://a.example/ & &amp; <!-- --> <![CDATA[ ]]> </urlset> <x:y/>"
    b" <url <item> </item> </channel> <entry> <link/> <sitemap> <!DOCTYPE \xff \0 , { }".split()
)
HEADS = st.sampled_from(
    [head.encode() for head in (f"<urlset {NS}>", "<rss><channel>", "<feed>", "<sitemapindex>")]
    + [b"", b"\x1f\x8b", b"\xff\xfe<", b"https://a.example/\n", b"loc,id\n", b'{"loc": "']
)


@given(
    HEADS,
    st.one_of(st.binary(max_size=200), st.lists(FRAGMENTS, max_size=30).map(b"\n".join)),
    st.sampled_from(["sitemap", "csv", "ndjson"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_give_items_or_a_source_error(
    put: Put, head: bytes, rest: bytes, kind: str
) -> None:
    source = f"{kind}:{put(head + rest, 'any')}"
    try:
        items = list(read(source))
    except SourceError:
        return

    assert all(isinstance(item, SourceRecord | RecordRefusal | Note) for item in items)
    assert all(item.loc for item in items if isinstance(item, SourceRecord))
    assert items == list(read(source))
