"""What changes entries besides their own events: time that passes, and other pages of their group.

Pure, like shared.patch: recorded in what is known of the pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from shared import fragments, groups
from shared.extensions import news, videos
from shared.extensions.alternates import Alternates
from shared.extensions.videos import Video
from shared.groups import Member
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
        _relist(known, key, fragments.render(replace(entry, videos=shown)))


def outdated(
    known: Known, before: Mapping[bytes, Mapping[str, Member]]
) -> dict[str, tuple[bytes, Alternates]]:
    """The pages whose alternates must change, for the set of their group did: group and new set.

    `before` are the groups as they were stored (PROTOCOL H2, H3).
    """
    found = {}
    for group, members in known.groups.items():
        now = groups.alternates(members)
        if now != groups.alternates(before.get(group, {})):
            for loc in members:
                found[loc] = group, groups.listed_by(loc, now)
    return found


def relink(known: Known, loc: str, group: bytes, fragment: bytes, linked: Alternates) -> None:
    """Have the page `loc`, listed as `fragment`, list `linked`. `known` must hold it."""
    page = known.pages[loc]
    if page is None or not page.live or page.group != group:
        known.groups[group].pop(loc, None)  # left without a word: the store was edited
        return
    changed = fragments.with_alternates(fragment, linked)
    if changed != fragment:
        _relist(known, loc, changed)


def _relist(known: Known, key: str, fragment: bytes) -> None:
    """List the page `key` as `fragment`, where it is and with the stamp it has."""
    page = known.pages[key]
    assert page is not None
    known.placed.setdefault(key, known.section_of(key) or 0)
    known.pages[key] = page._replace(length=len(fragment), digest=fragments.digest(fragment))
    known.fragments[key] = fragment
