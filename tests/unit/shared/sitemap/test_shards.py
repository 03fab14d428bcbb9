"""Names, numbers and limits of the files (PROTOCOL F7, F8)."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from shared.sitemap import fragments, shards
from shared.sitemap.shards import Limits, Shard, ShardState

families = st.from_regex(shards.SECTION, fullmatch=True).filter(
    lambda name: name not in shards.RESERVED and not shards.NUMBERED.search(name)
)
months = st.builds("{}-{:04}-{:02}".format, families, st.integers(1990, 9999), st.integers(1, 12))
sections = families | months
numbers = st.integers(1, 1_000_000)
any_shard = st.builds(Shard, sections, numbers)
NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def test_the_limits_are_those_of_the_protocol() -> None:
    assert (shards.MAX_URLS, shards.MAX_BYTES, shards.MAX_INDEX) == (50_000, 52_428_800, 50_000)


@given(any_shard)
def test_a_shard_is_read_as_it_was_written(shard: Shard) -> None:
    assert shard == Shard.read(str(shard).encode())


@given(
    st.builds(
        ShardState,
        st.integers(0, (1 << 64) - 1),
        st.integers(0, (1 << 32) - 1),
        st.integers(0, (1 << 64) - 1),
        st.integers(0, (1 << 32) - 1),
    )
)
def test_the_state_of_a_shard_is_read_as_it_was_stored(state: ShardState) -> None:
    assert state == ShardState.unpack(state.pack())


@pytest.mark.parametrize(
    ("form", "listed", "stored"),
    [
        ("xml", "posts-12.xml", "posts-12.xml"),
        ("xml.gz", "posts-12.xml.gz", "posts-12.xml.gz"),
        ("encoded", "posts-12.xml", "posts-12.xml.gz"),
        ("txt", "posts-12.txt", "posts-12.txt"),
        ("txt.gz", "posts-12.txt.gz", "posts-12.txt.gz"),
    ],
)
def test_each_form_has_its_names(form: str, listed: str, stored: str) -> None:
    name = shards.file_name(Shard("posts", 12), form)

    assert listed == name
    assert stored == shards.on_disk(name, form)
    assert form in shards.FORMS


def test_the_first_index_is_sitemap_xml_and_the_others_are_numbered_from_2() -> None:
    assert [shards.index_name(page) for page in range(3)] == [
        "sitemap.xml",
        "sitemap-2.xml",
        "sitemap-3.xml",
    ]


def test_a_packed_index_has_the_same_names_with_gz() -> None:
    assert [shards.index_name(page, packed=True) for page in range(2)] == [
        "sitemap.xml.gz",
        "sitemap-2.xml.gz",
    ]


@given(st.lists(st.integers(0, 10**9), max_size=40), st.booleans())
def test_a_packed_index_is_the_plain_one_and_equal_lines_are_equal_bytes(
    times: list[int], styled: bool
) -> None:
    lines = [
        fragments.index_line(f"https://www.example.com/p-{n}.xml", at) for n, at in enumerate(times)
    ]

    content = fragments.render_index(lines, styled=styled)
    packed = shards.packed_index(content)

    assert gzip.decompress(packed) == content
    assert packed == shards.packed_index(content)


@given(any_shard, any_shard, st.sampled_from(shards.FORMS))
def test_two_shards_never_share_a_file(one: Shard, other: Shard, form: str) -> None:
    names = [shards.on_disk(shards.file_name(shard, form), form) for shard in (one, other)]

    assert (one == other) == (names[0] == names[1])


@given(
    families, st.integers(1990, 9999), st.integers(1, 12), numbers, st.sampled_from(shards.FORMS)
)
def test_no_month_takes_the_name_of_a_numbered_file(
    family: str, year: int, month: int, number: int, form: str
) -> None:
    """PROTOCOL F16: posts-2025-11.xml is the month, and nothing else can be called that."""
    first = shards.file_name(Shard(f"{family}-{year}-{month:02}", 1), form)

    assert first.startswith(f"{family}-{year}-{month:02}.")
    assert first != shards.file_name(Shard(f"{family}-{year}-{month:02}", number + 1), form)
    assert first != shards.file_name(Shard(f"{family}", number), form)


@given(any_shard, st.integers(0, 1_000), st.sampled_from(shards.FORMS))
def test_no_shard_takes_the_name_of_an_index_or_of_another_file_of_ours(
    shard: Shard, page: int, form: str
) -> None:
    name = shards.file_name(shard, form)

    assert name not in {shards.index_name(page), "sitemap.css", "robots.txt", "atom.xml", "rss.xml"}


@pytest.mark.parametrize("name", ["sitemap", "robots", "atom", "rss"])
def test_names_of_other_files_in_the_web_root_are_reserved(name: str) -> None:
    assert name in shards.RESERVED


@pytest.mark.parametrize(
    "name", ["", "A", "a_b", "a.b", "a/b", "..", "\u00e9", "a b", "a\n", "a" * 33, "\u0661"]
)
def test_a_section_name_holds_nothing_a_path_or_a_url_would_read(name: str) -> None:
    assert not shards.SECTION.fullmatch(name)


@given(st.integers(16_384, shards.MAX_BYTES))
def test_new_pages_leave_room_for_edits_and_nothing_exceeds_the_file(size: int) -> None:
    limits = Limits(size=size)

    assert 0 < limits.soft < limits.hard < size
    assert limits.hard + fragments.OVERHEAD == size
    assert (limits.hard - limits.soft) * (shards.HEADROOM + 1) > limits.hard


@pytest.mark.parametrize(
    ("urls", "size", "drained"),
    [
        (0, 0, False),
        (1, 100, True),
        (24, 100, True),
        (25, 100, False),
        (1, 250_000, False),
        (1, 249_999, True),
    ],
)
def test_a_shard_is_nearly_empty_below_a_quarter_of_its_urls_and_bytes(
    urls: int, size: int, drained: bool
) -> None:
    limits = Limits(urls=100, size=1_000_000 + fragments.OVERHEAD)

    assert drained == limits.nearly_empty(ShardState(7, urls, size, 0))


def test_an_index_lists_its_files_in_the_order_given() -> None:
    urls = [f"https://www.example.com/posts-{n}.xml" for n in (2, 1, 10)]
    data = fragments.render_index(fragments.index_line(url, 1_795_219_200) for url in urls)
    root = etree.fromstring(data)

    assert root.tag == f"{NAMESPACE}sitemapindex"
    assert {child.tag for child in root} == {f"{NAMESPACE}sitemap"}
    assert urls == [child.text for child in root.iter(f"{NAMESPACE}loc")]
    assert data.startswith(b"<?xml")
    assert data.endswith(b"</sitemapindex>\n")


def test_a_full_index_stays_below_the_limit_of_its_bytes() -> None:
    url = "https://" + "a" * 253 + "/" + "b" * 32 + "-1000000.xml.gz"
    line = fragments.index_line(url, 1_795_219_200)

    assert len(line) * shards.MAX_INDEX < shards.MAX_BYTES
