"""Changes of entries by time: news and videos expire, scheduled news entries appear.

Pure, like shared.domain.decide.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from shared.domain.batch_state import NEWS, BatchState, Changes
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


def expire(state: BatchState, key: str, fragment: bytes, now_ms: int) -> Changes:
    """Return what removes news and videos that are over at `now_ms` from the entry `key`, listed as
    `fragment`, and its next expiry.

    `state` must hold its page. Times are in milliseconds since 1970.
    """
    changes, page = Changes(), state.pages[key]
    changes.expiry[key] = 0
    if page is None or not page.live:
        return changes
    entry = fragments.parse(fragment)
    if entry.news is not None:
        leaves = news.leaves_ms(entry.news)
        if leaves > now_ms:
            changes.expiry[key] = leaves
            return changes
        changes.pages[key] = page._replace(length=0, digest=bytes(5), owner=b"")
        changes.expired.add(key)
        return changes
    shown = tuple(video for video in entry.videos if not is_over(video, now_ms))
    changes.expiry[key] = next_over_ms(shown)
    if shown != entry.videos:
        state.relisted(key, fragments.render(replace(entry, videos=shown)), changes)
    return changes


def schedule(changes: Changes, key: str, twin: Entry, section: str, when: int) -> None:
    """Schedule the news entry `twin` to be listed in `section` at its publication (PROTOCOL W4).

    `when` is the stamp of its event; a later event of the page cancels the entry.
    """
    assert twin.news is not None
    head = _STAMP.pack(when) + section.encode() + b"\0"
    changes.coming[key] = head + fragments.render(twin)
    changes.expiry[key] = news.appears_ms(twin.news)


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


def appear(state: BatchState, key: str, stored: bytes, now_ms: int) -> Changes:
    """Return what lists the scheduled news entry `key`, unless a newer event of its page cancelled
    it.

    `state` must hold both. `now_ms` is in milliseconds since 1970.
    """
    changes = Changes(coming={key: b""}, expiry={key: 0})
    twin, page = scheduled(stored), state.pages[key.removeprefix(NEWS)]
    section, _, fragment = stored[_STAMP.size :].partition(b"\0")
    number = state.sections.get(section.decode(errors="replace"))
    if twin is None or twin.news is None or twin.loc != key.removeprefix(NEWS) or number is None:
        return changes
    (when,) = _STAMP.unpack_from(stored)
    leaves = news.leaves_ms(twin.news)
    if page is None or not page.live or page.stamp != when or leaves <= now_ms:
        return changes
    appears = news.appears_ms(twin.news)
    if appears > now_ms:
        changes.coming[key], changes.expiry[key] = stored, appears
        return changes
    before = state.pages[key]
    place = before.place if before else None
    changes.pages[key] = PageRecord(place, len(fragment), when, fragments.digest(fragment), b"")
    changes.fragments[key], changes.placed[key] = fragment, number
    changes.expiry[key] = leaves
    return changes


def due(
    state: BatchState, keys: Iterable[str], listed: Mapping[str, bytes],
    coming: Mapping[str, bytes], now_ms: int,
) -> Iterator[Changes]:  # fmt: skip
    """Yield what happens to the entries `keys`, due at `now_ms` (ms since 1970).

    `listed` are the fragments of those that are listed, `coming` the scheduled news entries.
    An entry that is listed but has no fragment right now, because it is being published, is left
    for the next call.
    """
    for key in keys:
        page = state.pages[key]
        if key in coming and (page is None or not page.live):
            yield appear(state, key, coming[key], now_ms)
        elif page is None or not page.live or key in listed:
            changes = expire(state, key, listed.get(key, b""), now_ms)
            if key in coming and changes.expiry[key] == 0:
                changes.coming[key] = b""  # listed by a later event
            yield changes
