"""What changes entries besides their own events: time that passes.

Pure, like shared.patch: recorded in what is known of the pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shared import fragments
from shared.extensions import news, videos
from shared.extensions.videos import Video
from shared.known import Known


def is_over(video: Video, now_ms: int) -> bool:
    """Whether `video` has expired (PROTOCOL V6)."""
    expires = videos.expires_ms(video)
    return expires is not None and expires <= now_ms


def next_over_ms(shown: Iterable[Video]) -> int:
    """When the first of these videos expires, in milliseconds since 1970; 0: none does."""
    return min(filter(None, map(videos.expires_ms, shown)), default=0)


def expire(known: Known, key: str, fragment: bytes, now_ms: int) -> None:
    """The time of the entry `key`, listed as `fragment`, has come: news leaves, and so do videos.

    `known` must hold its page. What is not over yet is entered to be looked at when it is.
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
