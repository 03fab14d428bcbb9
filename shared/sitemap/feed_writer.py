"""Feeds of a site's newest changes: Atom 1.0 (RFC 4287) and RSS 2.0 (PROTOCOL F11).

Pure: changes in, finished bytes out. A feed holds no time of its rendering: the same entries give
the same bytes at any time.

Events in any order give the same feeds as long as equal events of a page have a time in their
lastmod. Without one, an entry's time is that of the event that changed the page; a no-op changes
nothing, and the arrival decides which of two equal events is the no-op. The arrival is also the
time of an event with neither such a lastmod nor a version, and the upper bound of both.
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
"""Factor of stored to listed entries, so that the next ones move up when pages are deleted: the
feed is as if these had never existed, unless that many leave before a new entry comes."""

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
    """Feed data of one page: the time of its change (ms since 1970), its title and, for llms.txt,
    its description (empty: none).

    `digest` identifies the content that its event stated (fragments.digest).
    """

    updated_ms: int
    digest: bytes
    title: str = ""
    description: str = ""

    def pack(self) -> bytes:
        """The stored form of the item."""
        text = f"{self.title}\0{self.description}" if self.description else self.title
        return _HEAD.pack(self.updated_ms, self.digest) + text.encode()

    @classmethod
    def unpack(cls, stored: bytes) -> FeedItem | None:
        """The item that `pack` wrote; None for anything else.

        A damaged item must neither get into a file nor stop the sitemap (RELIABILITY T14).
        """
        try:
            updated_ms, digest = _HEAD.unpack_from(stored)
            title, parted, description = stored[_HEAD.size :].decode().partition("\0")
            item = cls(updated_ms, digest, title, description)
            w3c_dates.from_epoch_s(item.updated_ms // 1000)
        except (struct.error, UnicodeDecodeError, DateError):
            return None
        if bool(parted) != bool(description) or legal(title + description) != title + description:
            return None
        return item


class FeedChannel(NamedTuple):
    """Head of the feeds: `title` and `home` page of the site, `urls` of the two files, `hub`
    (WebSub; empty: none).
    """

    title: str
    home: str
    urls: Mapping[str, str]
    hub: str = ""


Listed = Sequence[tuple[str, FeedItem]]
"""Pairs of loc and feed item, the newest first."""


def updated_ms(lastmod: str | None, version_ms: int, arrived_ms: int) -> int:
    """The time of a page's change (ms since 1970): its canonical `lastmod` if that has a time, else
    its event's version (the arrival if it has none); never after the arrival (PROTOCOL M5).
    """
    if lastmod is not None and len(lastmod) > _DATE:
        version_ms = int(datetime.fromisoformat(lastmod).timestamp()) * 1000
    return min(version_ms, arrived_ms)


def newest(items: Mapping[str, FeedItem], most: int) -> Listed:
    """The `most` pages that changed last, in the order of shared/store/pages/apply.lua."""
    return sorted(items.items(), key=lambda each: (each[1].updated_ms, each[0]), reverse=True)[
        :most
    ]


def render(name: str, channel: FeedChannel, listed: Listed) -> bytes:
    """Render the file `name`, one of NAMES; `listed` must not be empty."""
    parts = _atom(channel, listed) if name == ATOM else _rss(channel, listed)
    return (_STARTS[name] + "".join(parts)).encode()


def is_ours(name: str, content: bytes) -> bool:
    """True if `content` is a file `name` that `render` made, or the beginning of one."""
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
