"""Changes of entries by time: news and videos expire, scheduled news entries appear.

Pure, like shared.domain.decide: the outcome is recorded in the batch state.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace

from shared.domain.batch_state import NEWS, BatchState
from shared.domain.page_record import PageRecord
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.sitemap.extensions import news, videos
from shared.sitemap.extensions.videos import Video

_STAMP = struct.Struct(">Q")


def is_over(video: Video, now_ms: int) -> bool:
    """True if `video` has expired at `now_ms` (ms since 1970; PROTOCOL V6)."""
    expires = videos.expires_ms(video)
    return expires is not None and expires <= now_ms


def next_over_ms(shown: Iterable[Video]) -> int:
    """The earliest expiry of these videos, in milliseconds since 1970; 0: none expires."""
    return min(filter(None, map(videos.expires_ms, shown)), default=0)


def expire(known: BatchState, key: str, fragment: bytes, now_ms: int) -> None:
    """Remove news and videos that are over at `now_ms` from the entry `key`, listed as `fragment`.

    `known` must hold its page; it gets the next expiry. Times are in milliseconds since 1970.
    """
    page = known.pages[key]
    known.expiry[key] = 0
    if page is None or not page.live:
        return
    entry = fragments.parse(fragment)
    if entry.news is not None:
        leaves = news.leaves_ms(entry.news)
        if leaves > now_ms:
            known.expiry[key] = leaves
            return
        known.pages[key] = page._replace(length=0, digest=bytes(5), owner=b"")
        known.expired.add(key)
        return
    shown = tuple(video for video in entry.videos if not is_over(video, now_ms))
    known.expiry[key] = next_over_ms(shown)
    if shown != entry.videos:
        known.relist(key, fragments.render(replace(entry, videos=shown)))


def schedule(known: BatchState, key: str, twin: Entry, section: str, when: int) -> None:
    """Schedule the news entry `twin` to be listed in `section` at its publication (PROTOCOL W4).

    `when` is the stamp of its event; a later event of the page cancels the entry. Raises
    UnknownSectionError.
    """
    assert twin.news is not None
    known.number(section)
    head = _STAMP.pack(when) + section.encode() + b"\0"
    known.coming[key] = head + fragments.render(twin)
    known.expiry[key] = news.appears_ms(twin.news)


def scheduled(stored: bytes) -> Entry | None:
    """The entry that `schedule` stored; None for anything else (RELIABILITY T19)."""
    try:
        entry = fragments.parse(stored[_STAMP.size :].partition(b"\0")[2])
    except (ValueError, LookupError):
        return None
    return entry if entry.news is not None else None


def appears_ms(stored: bytes, page: PageRecord) -> int | None:
    """The time (ms since 1970) at which the scheduled news entry of `page` appears; None if a newer
    event of the page cancelled it.
    """
    twin = scheduled(stored)
    if twin is None or twin.news is None or _STAMP.unpack_from(stored) != (page.stamp,):
        return None
    return news.appears_ms(twin.news)


def appear(known: BatchState, key: str, stored: bytes, now_ms: int) -> None:
    """List the scheduled news entry `key`, unless a newer event of its page cancelled it.

    `known` must hold both. `now_ms` is in milliseconds since 1970.
    """
    known.coming[key], known.expiry[key] = b"", 0
    twin, page = scheduled(stored), known.pages[key.removeprefix(NEWS)]
    section, _, fragment = stored[_STAMP.size :].partition(b"\0")
    number = known.sections.get(section.decode(errors="replace"))
    if twin is None or twin.news is None or twin.loc != key.removeprefix(NEWS) or number is None:
        return
    (when,) = _STAMP.unpack_from(stored)
    leaves = news.leaves_ms(twin.news)
    if page is None or not page.live or page.stamp != when or leaves <= now_ms:
        return
    appears = news.appears_ms(twin.news)
    if appears > now_ms:
        known.coming[key], known.expiry[key] = stored, appears
        return
    before = known.pages[key]
    place = before.place if before else None
    known.pages[key] = PageRecord(place, len(fragment), when, fragments.digest(fragment), b"")
    known.fragments[key], known.placed[key], known.expiry[key] = fragment, number, leaves
