"""The limits of files, at their exact boundaries: PROTOCOL F7, F8, F9, L2."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import etree
from pydantic import ValidationError

from shared.config.sites.section import Section
from shared.config.sites.site import Site
from shared.errors import InvalidError
from shared.sitemap import fragments, shards
from shared.sitemap.entry import Entry
from shared.sitemap.shards import Limits
from tests.integration.logs import silence
from tests.integration.rig import BASE, SCHEMA, Rig

EMPTY = len(fragments.render(Entry(BASE)))
"""Bytes of a fragment whose loc is the base alone."""

XML_FORMS = [form for form in shards.FORMS if form not in shards.TEXT_FORMS]
SPARE = fragments.OVERHEAD - len(fragments.urlset_start()) - len(fragments.URLSET_END)
"""Bytes that are kept for the namespaces of extensions, in a file that uses none."""


def page(number: int, size: int = 0) -> dict[str, Any]:
    """An upsert of page `number` whose fragment comes to `size` bytes (0: as it happens)."""
    return {"type": "upsert", "loc": BASE + f"{number:05}".ljust(size - EMPTY, "x")}


def locs_of(size: int, total: int) -> Iterator[dict[str, Any]]:
    """Pages of about `size` bytes each whose fragments come to `total` bytes together."""
    size, longer = divmod(total, total // size)
    count = total // size
    for number in range(count):
        yield page(number, size + (number >= count - longer))


def fill(rig: Rig, items: list[dict[str, Any]]) -> None:
    """Apply `items` in their order and publish nothing yet."""
    pump = rig.pump()
    for start in range(0, len(items), 1000):
        rig.send(*items[start : start + 1000])
        with silence():
            pump.apply_all()


def sizes(rig: Rig) -> dict[str, tuple[int, int]]:
    """URLs and bytes of every shard file."""
    return {
        name: (content.count(b"<url>"), len(content))
        for name, content in sorted(rig.shard_files().items())
    }


@pytest.mark.timeout(180)
def test_50_000_urls_are_one_file_and_the_next_one_opens_the_second(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, sections={"posts": {"shard_urls": 50_000}})
    fill(rig, [page(number) | {"section": "posts"} for number in range(50_000)])
    rig.settle()
    assert {name: urls for name, (urls, _) in sizes(rig).items()} == {"posts-1": 50_000}
    first = rig.files()["posts-1.xml"]

    rig.do(page(50_000) | {"section": "posts"})

    assert {n: urls for n, (urls, _) in sizes(rig).items()} == {"posts-1": 50_000, "posts-2": 1}
    assert first == rig.files()["posts-1.xml"]
    assert SCHEMA["urlset"].validate(etree.fromstring(first.content))
    assert not list(rig.audit().verify())


@pytest.mark.timeout(180)
def test_a_file_grows_to_exactly_its_last_byte_and_not_one_further(
    store: redis.Redis, tmp_path: Path
) -> None:
    """New pages fill it up to the soft limit, returning and changing ones up to the hard one."""
    rig = Rig(store, tmp_path, shard_urls=50_000, hints=True)
    zero = grow_to_the_byte(rig, 1900, Limits(50_000))

    full = {"pages-1": shards.MAX_BYTES - SPARE}
    assert {name: size for name, (_, size) in sizes(rig).items()} == full
    assert SCHEMA["urlset"].validate(etree.fromstring(rig.shard_files()["pages-1"]))

    rig.do(zero | {"priority": "0.25"})

    (_, left), moved = sizes(rig).values()
    assert (1, fragments.OVERHEAD + shards.MAX_BYTES - left + 1 - 2 * SPARE) == moved
    assert b"<priority>0.25<" in rig.shard_files()["pages-2"]
    assert not list(rig.audit().verify())


@pytest.mark.parametrize("form", XML_FORMS)
def test_the_byte_limit_is_that_of_the_setting_in_every_form(
    store: redis.Redis, tmp_path: Path, form: str
) -> None:
    rig = Rig(store, tmp_path, shard_bytes=16_384, hints=True, form=form)
    zero = grow_to_the_byte(rig, 400, rig.site.limits["pages"])
    assert {name: size for name, (_, size) in sizes(rig).items()} == {"pages-1": 16_384 - SPARE}
    rig.check()

    rig.do(zero | {"priority": "0.25"})

    (_, left), moved = sizes(rig).values()
    assert (1, fragments.OVERHEAD + 16_384 - left + 1 - 2 * SPARE) == moved
    rig.check()


def grow_to_the_byte(rig: Rig, size: int, limits: Limits) -> dict[str, Any]:
    """One shard, filled by pages of about `size` bytes to its very last byte; its first page,
    which then has priority 0.5.

    Pages are deleted, others fill the room up to the soft limit, then the deleted ones return.
    """
    room = limits.hard - len("<priority>0.5</priority>")
    pages = list(locs_of(size, room))
    returning = pages[-((limits.hard - limits.soft) // size + 2) :]
    early = pages[: len(pages) - 2 * len(returning)]
    late = pages[len(early) : -len(returning)]
    fill(rig, early + returning)
    fill(rig, [item | {"type": "delete"} for item in returning])
    fill(rig, late)
    fill(rig, returning)
    rig.do(pages[0] | {"priority": "0.5"})
    return pages[0]


@pytest.mark.parametrize(("more", "files"), [(0, 1), (1, 2)])
def test_new_pages_fill_a_file_exactly_up_to_the_soft_limit(
    store: redis.Redis, tmp_path: Path, more: int, files: int
) -> None:
    rig = Rig(store, tmp_path, shard_bytes=16_384)
    soft = rig.site.limits["pages"].soft
    items = list(locs_of(400, soft + more))

    rig.do(*items)

    assert files == len(rig.shard_files())
    assert soft < rig.site.limits["pages"].hard
    rig.check()


def test_a_loc_of_2_047_characters_is_listed_and_one_of_2_048_refused(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    longest = BASE.ljust(2047, "x")

    rig.do({"type": "upsert", "loc": longest})

    assert [longest] == list(rig.listed())
    with pytest.raises(InvalidError) as refused:
        rig.parse({"type": "upsert", "loc": longest + "x"})
    assert [fault.rule for fault in refused.value.faults] == ["PROTOCOL L2"]
    rig.check()


def test_the_next_index_file_is_opened_when_one_is_full_and_robots_names_both(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, shard_urls=1, index_shards=2, robots="create")
    rig.do(page(1), page(2))
    assert list(rig.index()) == ["sitemap.xml"]

    rig.do(page(3))

    assert {n: len(of) for n, of in rig.index().items()} == {"sitemap.xml": 2, "sitemap-2.xml": 1}
    named = [f"Sitemap: {BASE}{name}" for name in ("sitemap.xml", "sitemap-2.xml")]
    lines = (tmp_path / "robots.txt").read_text().splitlines()
    assert named == [line for line in lines if line.startswith("Sitemap:")]
    rig.check()


def all_kinds() -> list[dict[str, Any]]:
    """Pages with every optional member, and with every character that must be escaped."""
    fields: list[dict[str, Any]] = [
        {}, {"lastmod": "2026-11-01"}, {"lastmod": "2026-11-01T01:02:03Z"},
        {"changefreq": "daily"}, {"priority": "1.0"},
        {"lastmod": "2026-01-01", "changefreq": "never", "priority": 0.3},
        {"loc": BASE + "?a=1&b='\"<>"}, {"loc": BASE + "ü/日本"},
    ]  # fmt: skip
    return [page(number) | more for number, more in enumerate(fields)]


@pytest.mark.parametrize("form", XML_FORMS)
def test_files_of_every_form_satisfy_our_schemas(
    store: redis.Redis, tmp_path: Path, form: str
) -> None:
    rig = Rig(store, tmp_path, form=form, hints=True, shard_urls=3, index_shards=2)

    rig.do(*all_kinds())

    assert len(rig.shard_files()) == 3
    rig.check()


@pytest.mark.parametrize("form", XML_FORMS)
def test_files_of_every_form_satisfy_the_official_schemas(
    store: redis.Redis, tmp_path: Path, corpus: Path, form: str
) -> None:
    rig = Rig(store, tmp_path, form=form, hints=True, shard_urls=3, index_shards=2)
    pages, indexes = (
        etree.XMLSchema(etree.parse(corpus / "xsd" / name)) for name in ("all.xsd", "siteindex.xsd")
    )

    rig.do(*all_kinds())

    for content in rig.shard_files().values():
        pages.assertValid(etree.fromstring(content))
    for name in rig.index():
        indexes.assertValid(etree.fromstring(rig.files()[name].content))


@pytest.mark.parametrize("form", ["xml.gz", "encoded"])
def test_a_packed_file_is_one_gzip_member_for_every_decoder(
    store: redis.Redis, tmp_path: Path, form: str
) -> None:
    rig = Rig(store, tmp_path, form=form, block_urls=3)

    rig.do(*map(page, range(20)))

    packed = rig.files()["pages-1.xml.gz"].content
    decoder = zlib.decompressobj(wbits=31)
    content = decoder.decompress(packed) + decoder.flush()
    assert (decoder.eof, decoder.unused_data) == (True, b"")
    assert gzip.decompress(packed) == content
    assert content.startswith(fragments.urlset_start())
    assert content.count(b"<url>") == 20
    assert packed[4:8] == bytes(4), "a time in it would change bytes that did not change (F9)"


@pytest.mark.parametrize(
    "over",
    [
        {"shard_urls": 50_001},
        {"shard_bytes": 52_428_801},
        {"index_shards": 50_001},
        {"sections": {"posts": {"shard_urls": 50_001}}},
        {"sections": {"news": {"news": True, "shard_urls": 1_001}}},
    ],
)
def test_limits_above_those_of_the_protocol_cannot_be_configured(
    tmp_path: Path, over: dict[str, Any]
) -> None:
    given = {"base_url": BASE, "web_root": tmp_path, "tokens": ("0123456789abcdef",)}
    assert Site(**given).sections == {}  # type: ignore[arg-type]  # what TOML gives
    assert Section(news=True, shard_urls=1_000).shard_urls == 1_000

    with pytest.raises(ValidationError):
        Site(**(given | over))
