"""Feeds as bytes: valid whatever the pages are called, and read back as they were meant."""

from __future__ import annotations

from datetime import UTC, datetime

import feedparser
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.errors import SitemapdError
from shared.events.extension_fields import TITLE
from shared.sitemap import feed_writer, w3c_dates
from shared.sitemap.feed_writer import ATOM, NAMES, RSS, FeedChannel, FeedItem
from tests import feeds as reader
from tests.unit.strategies import MARKED, locs, moments

HOME = "https://www.example.com/"
CHANNEL = FeedChannel("Example & <Sons>", HOME, {name: HOME + name for name in NAMES})
NOW_MS = 1_795_256_430_000
"""2026-11-21T10:20:30Z."""


def _title(text: str) -> str:
    try:
        return TITLE.take(text, lambda _: None)
    except SitemapdError:
        return ""


titles = (st.text(max_size=40) | st.lists(st.sampled_from([*MARKED, "]]>"])).map("".join)).map(
    _title
)
items = st.builds(
    lambda moment, rest, title: FeedItem(w3c_dates.epoch_ms(moment) + rest, b"12345", title),
    moments, st.integers(0, 999), titles,
)  # fmt: skip


def expected(listed: feed_writer.Listed) -> list[reader.Read]:
    return [
        reader.Read(loc, item.title or loc, w3c_dates.from_epoch_s(item.updated_ms // 1000))
        for loc, item in listed
    ]


@given(st.dictionaries(locs, items, min_size=1, max_size=8), titles)
def test_any_pages_give_valid_feeds_that_read_back_the_same(
    pages: dict[str, FeedItem], title: str
) -> None:
    """RFC 4287 by its schema, RSS 2.0 by the rules in tests/feeds.py."""
    channel = CHANNEL._replace(title=title or "www.example.com", hub="https://hub.example/?a=1&b=2")
    listed = feed_writer.newest(pages, 100)

    atom, rss = (feed_writer.render(name, channel, listed) for name in NAMES)

    assert reader.atom(atom) == expected(listed)
    assert reader.rss(rss) == expected(listed)
    assert [reader.hub(each) for each in (atom, rss)] == ["https://hub.example/?a=1&b=2"] * 2


@given(items)
def test_an_item_is_stored_as_it_is(item: FeedItem) -> None:
    assert FeedItem.unpack(item.pack()) == item


@given(st.binary(max_size=40))
@example(bytes(13) + b"\x01")
@example(b"\x7f" * 13)
def test_what_the_store_damaged_is_none_or_can_be_listed(stored: bytes) -> None:
    """RELIABILITY T14."""
    item = FeedItem.unpack(stored)

    assert item is None or item.pack() == stored
    if item is not None:
        assert reader.atom(feed_writer.render(ATOM, CHANNEL, [(HOME, item)]))


@pytest.mark.parametrize("name", NAMES)
def test_another_reader_understands_them(name: str) -> None:
    pages = {
        f"{HOME}a?x=1&y=2": FeedItem(NOW_MS, b"12345", "Fish & Chips: café"),
        f"{HOME}b": FeedItem(NOW_MS - 86_400_000, b"12345"),
    }

    read = feedparser.parse(feed_writer.render(name, CHANNEL, feed_writer.newest(pages, 10)))

    assert not read.bozo
    assert read.version == {ATOM: "atom10", RSS: "rss20"}[name]
    assert [link.href for link in read.feed.links if link.rel == "self"] == [HOME + name]
    assert read.feed.link == HOME
    assert [(e.id, e.link, e.title) for e in read.entries] == [
        (f"{HOME}a?x=1&y=2", f"{HOME}a?x=1&y=2", "Fish & Chips: café"),
        (f"{HOME}b", f"{HOME}b", f"{HOME}b"),
    ]
    when = {ATOM: "updated_parsed", RSS: "published_parsed"}[name]
    assert [datetime(*entry[when][:6], tzinfo=UTC).isoformat() for entry in read.entries] == [
        "2026-11-21T10:20:30+00:00", "2026-11-20T10:20:30+00:00",
    ]  # fmt: skip


def test_the_newest_come_first_and_no_more_than_asked_for() -> None:
    pages = {f"{HOME}{n}": FeedItem(n // 2, b"12345") for n in range(6)}

    assert [loc[-1] for loc, _ in feed_writer.newest(pages, 4)] == ["5", "4", "3", "2"]


@pytest.mark.parametrize(
    ("lastmod", "version_ms", "found"),
    [
        ("2026-11-20T08:00:00Z", NOW_MS - 1, "2026-11-20T08:00:00Z"),
        ("0001-01-01T00:00:00Z", NOW_MS - 1, "0001-01-01T00:00:00Z"),
        ("2026-11-20", NOW_MS - 86_400_000, "2026-11-20T10:20:30Z"),
        (None, NOW_MS - 1_000, "2026-11-21T10:20:29Z"),
        (None, NOW_MS + 60_000, "2026-11-21T10:20:30Z"),
        ("2026-11-21T10:22:00Z", 0, "2026-11-21T10:20:30Z"),
    ],
)
def test_a_page_changed_when_its_lastmod_says_or_its_event_and_never_in_the_future(
    lastmod: str | None, version_ms: int, found: str
) -> None:
    """PROTOCOL M2, M5."""
    updated = feed_writer.updated_ms(lastmod, version_ms, NOW_MS)

    assert w3c_dates.from_epoch_s(updated // 1000) == found


@pytest.mark.parametrize("name", NAMES)
def test_ours_is_told_from_any_other_feed(name: str) -> None:
    ours = feed_writer.render(name, CHANNEL, [(HOME, FeedItem(0, b"12345"))])

    assert feed_writer.is_ours(name, ours)
    assert feed_writer.is_ours(name, ours[:60])
    assert not feed_writer.is_ours(name, b"")
    assert not feed_writer.is_ours(name, ours.replace(b"sitemapd", b"another"))
    assert not feed_writer.is_ours(name, b'<?xml version="1.0"?>\n' + ours)
