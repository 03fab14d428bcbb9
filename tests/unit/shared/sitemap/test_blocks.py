"""Blocks hold exactly their fragments, and any run of them is one gzip file (RFC 1952)."""

from __future__ import annotations

import gzip
import random
import struct
import subprocess
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import igzip

from shared.sitemap import blocks, fragments
from shared.sitemap.blocks import Block
from shared.sitemap.entry import Entry

FEW = 4
"""More patches than this are applied in another way, which must not show."""

LOCS = [f"https://www.example.com/{name}" for name in ("", "a", "a'", "aa", "b?c=1&d=2", "z/", "~")]
dates = st.dates().map(str)
pages = st.dictionaries(st.sampled_from(LOCS), dates)
changes = st.dictionaries(st.sampled_from(LOCS), st.none() | dates)
raws = st.binary(max_size=2_000) | st.sampled_from([b"", b"\n", b"ab" * 70_000])


def listing(listed: dict[str, str]) -> bytes:
    """What a block of these pages must hold: each fragment once, sorted."""
    return b"".join(sorted(fragments.render(Entry(*page)) for page in listed.items()))


def patches(changed: dict[str, str | None]) -> dict[bytes, bytes | None]:
    return {
        fragments.key(loc): None if date is None else fragments.render(Entry(loc, date))
        for loc, date in changed.items()
    }


@given(pages, changes)
def test_editing_a_block_is_updating_a_dict(before: dict[str, str], changed: dict) -> None:
    after = {loc: date for loc, date in {**before, **changed}.items() if date is not None}

    assert (listing(after), len(after)) == blocks.edit(listing(before), patches(changed))


@given(pages, changes)
def test_patches_applied_twice_change_nothing_more(before: dict[str, str], changed: dict) -> None:
    once = blocks.edit(listing(before), patches(changed))

    assert once == blocks.edit(once[0], patches(changed))


@given(pages, changes, st.randoms(use_true_random=False))
def test_the_order_and_grouping_of_patches_do_not_matter(
    before: dict[str, str], changed: dict, dice: random.Random
) -> None:
    together = blocks.edit(listing(before), patches(changed))
    items = list(patches(changed).items())
    dice.shuffle(items)
    raw = listing(before)
    for item in items:
        raw, _ = blocks.edit(raw, dict([item]))

    assert together[0] == raw
    assert together == blocks.edit(listing(before), dict(items))


@pytest.mark.parametrize("count", range(2 * FEW))
def test_few_patches_and_many_end_in_the_same_bytes(count: int) -> None:
    listed = {f"https://www.example.com/{i:03}": "2026-11-21" for i in range(0, 40, 2)}
    changed: dict[str, str | None] = {f"https://www.example.com/{i:03}": None for i in range(count)}
    changed |= {f"https://www.example.com/{i:03}": "2026-11-22" for i in range(1, count, 3)}
    absent = {f"https://www.example.com/absent-{i}": None for i in range(FEW + 1)}

    assert blocks.edit(listing(listed), patches(changed)) == blocks.edit(
        listing(listed), patches({**changed, **absent})
    )


@given(pages)
def test_a_block_falls_apart_into_its_fragments(listed: dict[str, str]) -> None:
    parts = blocks.split(listing(listed))

    assert {Entry(*page) for page in listed.items()} == set(map(fragments.parse, parts))
    assert listing(listed) == b"".join(parts)


@given(raws, st.integers(0, 0xFFF), st.integers(0, fragments.EVERY_USE))
def test_a_block_gives_back_what_was_deflated_also_after_it_was_stored(
    raw: bytes, urls: int, uses: int
) -> None:
    block = blocks.deflate(raw, urls, uses)

    assert block == Block.unpack(block.pack())
    assert raw == block.raw()
    assert (zlib.crc32(raw), len(raw), urls) == block[:3]
    assert block == blocks.deflate(raw, urls, uses)


@given(raws)
def test_a_block_is_of_its_own_bytes_and_of_no_others(raw: bytes) -> None:
    block = blocks.deflate(raw)

    assert block.is_of(raw)
    assert block.is_of(memoryview(raw))
    assert not block.is_of(raw + b"\n")
    assert not block.is_of(raw[:-1] if raw else b"\0")
    assert not block.is_of(bytes([raw[0] ^ 1]) + raw[1:] if raw else b"\n")


@settings(max_examples=50)
@given(st.lists(raws, max_size=6))
def test_any_run_of_blocks_is_one_gzip_member_with_their_content(contents: list[bytes]) -> None:
    data = blocks.gzip_file(map(blocks.deflate, contents))
    content = b"".join(contents)
    decoder = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    assert content == decoder.decompress(data)
    assert decoder.eof
    assert decoder.unused_data == b""
    assert content == gzip.decompress(data) == igzip.decompress(data)
    assert struct.pack("<II", zlib.crc32(content), len(content)) == data[-8:]


@pytest.mark.parametrize("contents", [[], [b""], [b"", b"a", b""], [b"a" * 200_000, b"b"]])
def test_the_gzip_program_reads_the_file(contents: list[bytes]) -> None:
    data = blocks.gzip_file(map(blocks.deflate, contents))
    done = subprocess.run(["gzip", "-dc"], input=data, capture_output=True, check=True)

    assert b"".join(contents) == done.stdout
    assert done.stderr == b""


def test_equal_content_gives_equal_bytes_without_a_time_or_a_name_in_them() -> None:
    """PROTOCOL F9: an unchanged shard keeps its hash. RFC 1952: flags, then mtime, are zero."""
    first, second = (blocks.gzip_file([blocks.deflate(b"a"), blocks.deflate(b"b")]) for _ in "12")

    assert first == second
    assert first[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"


def test_a_damaged_segment_is_noticed_by_every_decoder() -> None:
    data = bytearray(blocks.gzip_file([blocks.deflate(b"abc" * 1_000)]))
    data[-8] ^= 1

    with pytest.raises(gzip.BadGzipFile, match="CRC"):
        gzip.decompress(data)
