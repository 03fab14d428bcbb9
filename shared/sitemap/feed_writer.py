"""Feeds of a site's newest changes: Atom 1.0 (RFC 4287) and RSS 2.0 (PROTOCOL F11).

Pure: what changed, in; finished bytes out. They hold no time of their own making: the same entries
give the same bytes, whenever they are rendered.

Events in any order end in the same feeds as long as those of a page that say the same have a time
in their lastmod: without one an entry's time is that of the event which changed the page, a no-op
moves nothing, and which of two equal events was the no-op is a matter of arrival. Arrival is the
only source, too, where an event has neither such a lastmod nor a version, and the bound of both.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from email.utils import formatdate
from typing import NamedTuple

from shared.errors import DateError
from shared.sitemap import w3c_dates
from shared.sitemap.xml_text import escape, legal

ATOM, RSS = "atom.xml", "rss.xml"
NAMES = (ATOM, RSS)

RESERVE = 2
"""How many times the entries of a feed are kept, so that the next come up when pages are deleted:
the same feed as if these had never been, unless that many leave before anything new comes."""

_NAMESPACE = "http://www.w3.org/2005/Atom"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_GENERATOR = "<generator>sitemapd</generator>\n"
_STARTS = {
    ATOM: f'{_DECLARATION}<feed xmlns="{_NAMESPACE}">\n{_GENERATOR}',
    RSS: (f'{_DECLARATION}<rss version="2.0" xmlns:atom="{_NAMESPACE}">\n<channel>\n{_GENERATOR}'),
}
_DATE = len("2026-11-21")
_HEAD = struct.Struct(">q5s")


class FeedItem(NamedTuple):
    """What the feeds say of one page: when it changed (ms since 1970) and its title (empty: none).

    `digest` tells what its event said from what another says (fragments.digest).
    """

    updated_ms: int
    digest: bytes
    title: str = ""

    def pack(self) -> bytes:
        """The form in which it is stored."""
        return _HEAD.pack(self.updated_ms, self.digest) + self.title.encode()

    @classmethod
    def unpack(cls, stored: bytes) -> FeedItem | None:
        """The item of what `pack` gave; None for anything else.

        What was damaged must not get into a file, nor hold up the sitemap (RELIABILITY T14).
        """
        try:
            updated_ms, digest = _HEAD.unpack_from(stored)
            item = cls(updated_ms, digest, stored[_HEAD.size :].decode())
            w3c_dates.from_epoch_s(item.updated_ms // 1000)
        except (struct.error, UnicodeDecodeError, DateError):
            return None
        return item if item.title == legal(item.title) else None


class FeedChannel(NamedTuple):
    """Whose feeds: `title` and `home` page of the site, `urls` of the two files, `hub` (WebSub;
    empty: none).
    """

    title: str
    home: str
    urls: Mapping[str, str]
    hub: str = ""


Listed = Sequence[tuple[str, FeedItem]]
"""Pages by loc, the newest first."""


def updated_ms(lastmod: str | None, version_ms: int, arrived_ms: int) -> int:
    """When a page changed: its canonical `lastmod` if that has a time, else its event's version
    (the arrival where it has none); never after the event arrived (PROTOCOL M5).
    """
    if lastmod is not None and len(lastmod) > _DATE:
        version_ms = int(datetime.fromisoformat(lastmod).timestamp()) * 1000
    return min(version_ms, arrived_ms)


def newest(items: Mapping[str, FeedItem], most: int) -> Listed:
    """The `most` pages that changed last, in the order in which apply.lua would keep them."""
    return sorted(items.items(), key=lambda each: (each[1].updated_ms, each[0]), reverse=True)[
        :most
    ]


def render(name: str, channel: FeedChannel, listed: Listed) -> bytes:
    """The file `name`, one of NAMES; `listed` must not be empty."""
    parts = _atom(channel, listed) if name == ATOM else _rss(channel, listed)
    return (_STARTS[name] + "".join(parts)).encode()


def is_ours(name: str, content: bytes) -> bool:
    """Whether `content` is that of a file `name` which `render` made, or the beginning of one."""
    start = _STARTS[name].encode()
    return bool(content) and start.startswith(content[: len(start)])


def _atom(channel: FeedChannel, listed: Listed) -> Iterable[str]:
    title, this = escape(channel.title), escape(channel.urls[ATOM])
    yield f"<id>{this}</id>\n<title>{title}</title>\n<updated>{_rfc3339(listed[0][1])}</updated>\n"
    yield f"<author><name>{title}</name></author>\n"
    yield f'<link rel="alternate" href="{escape(channel.home)}"/>\n'
    yield f'<link rel="self" type="application/atom+xml" href="{this}"/>\n'
    if channel.hub:
        yield f'<link rel="hub" href="{escape(channel.hub)}"/>\n'
    for loc, item in listed:
        at = escape(loc)
        yield (
            f"<entry><id>{at}</id><title>{escape(item.title or loc)}</title>"
            f'<updated>{_rfc3339(item)}</updated><link rel="alternate" href="{at}"/></entry>\n'
        )
    yield "</feed>\n"


def _rss(channel: FeedChannel, listed: Listed) -> Iterable[str]:
    title, this = escape(channel.title), escape(channel.urls[RSS])
    yield f"<title>{title}</title>\n<link>{escape(channel.home)}</link>\n"
    yield f"<description>Newest changes of {title}</description>\n"
    yield f"<lastBuildDate>{_rfc822(listed[0][1])}</lastBuildDate>\n"
    yield f'<atom:link rel="self" type="application/rss+xml" href="{this}"/>\n'
    if channel.hub:
        yield f'<atom:link rel="hub" href="{escape(channel.hub)}"/>\n'
    for loc, item in listed:
        at = escape(loc)
        yield (
            f"<item><title>{escape(item.title or loc)}</title><link>{at}</link>"
            f'<guid isPermaLink="true">{at}</guid><pubDate>{_rfc822(item)}</pubDate></item>\n'
        )
    yield "</channel>\n</rss>\n"


def _rfc3339(item: FeedItem) -> str:
    return w3c_dates.from_epoch_s(item.updated_ms // 1000)


def _rfc822(item: FeedItem) -> str:
    return formatdate(item.updated_ms // 1000, usegmt=True)
