"""Unlist a page that was found broken, and list it again as it was.

Neither is a version of the page: its stamp and its owner stay, so any event of its sender that is
not older than the listed one decides again, and whatever was decided since makes both void.
"""

from __future__ import annotations

from dataclasses import replace

from shared.domain import translation_groups
from shared.domain.batch_state import BatchState, Changes, Outcome
from shared.domain.entries import group_alternates, news_entries
from shared.domain.expiry import is_over, next_over_ms
from shared.domain.page_record import UNLISTED, PageRecord
from shared.domain.translation_groups import GroupMember
from shared.events.event import RELIST, UNLIST, Event
from shared.sitemap import fragments
from shared.sitemap.feed_writer import FeedItem

_NEWER = Outcome(changed=False, reason="what was found is about an earlier state of this page")


def decided(state: BatchState, changes: Changes, event: Event, now_ms: int) -> Outcome | None:
    """Return the outcome of an event of our own; None for any other. `now_ms`: ms since 1970."""
    if event.type == UNLIST:
        return _unlist(state, changes, event)
    return _relist(state, changes, event, now_ms) if event.type == RELIST else None


def _unlist(state: BatchState, changes: Changes, event: Event) -> Outcome:
    """Take the page out, if it is still listed by the event that was looked at."""
    loc, page = event.loc or "", state.pages.get(event.loc or "")
    if page is None or not page.live or page.stamp != event.stamp:
        return _NEWER
    if page.group:
        group_alternates.leave(state, changes, loc, page.group)
    changes.pages[loc] = page._replace(length=0, digest=UNLISTED, group=b"")
    changes.fragments[loc] = None
    if loc in state.feed:
        changes.feed[loc] = None
    news_entries.drop(state, changes, loc, page.stamp)
    return Outcome(changed=True, reason=f"unlisted: {event.why}")


def _relist(state: BatchState, changes: Changes, event: Event, now_ms: int) -> Outcome:
    """List the page as it was when it was unlisted, if no event came since. The `version` of the
    event is the time of its feed item.
    """
    loc, page = event.loc or "", state.pages.get(event.loc or "")
    if not is_unlisted(page, event.stamp) or page is None or page.place is None:
        return _NEWER
    entry, group = fragments.parse((event.entry or "").encode()), b""
    shown = tuple(video for video in entry.videos if not is_over(video, now_ms))
    linked = entry.alternates
    if event.group:
        group = group_of(event)
        members = {**state.groups[group], loc: GroupMember(page.stamp, event.lang)}
        changes.groups[group] = members
        linked = translation_groups.listed_by(loc, translation_groups.alternates(members))
        changes.linked[loc] = linked
    fragment = fragments.render(replace(entry, videos=shown, alternates=linked))
    digest = fragments.digest(fragment)
    changes.pages[loc] = page._replace(length=len(fragment), digest=digest, group=group)
    changes.fragments[loc], changes.placed[loc] = fragment, page.place.section
    if shown:
        changes.expiry[loc] = next_over_ms(shown)
    if event.news:
        news_entries.put_back(state, changes, entry, event.news, page.stamp, now_ms)
    if event.version is not None and loc in state.feed:
        stated = replace(entry, alternates=()) if event.group else entry
        own = fragments.digest(fragments.render(stated))
        texts = event.title or "", event.description or ""
        changes.feed[loc] = FeedItem(event.version, own, *texts)
    return Outcome(changed=True, reason=f"listed again: {event.why}")


def is_unlisted(page: PageRecord | None, stamp: int | None) -> bool:
    """True if `page` was unlisted when it had this stamp, and no event decided on it since."""
    return page is not None and (page.live, page.stamp, page.digest) == (False, stamp, UNLISTED)


def group_of(event: Event) -> bytes:
    """The digest of the group that `event` names: an event that lists a page again knows no more
    than the digest.
    """
    if event.entry is not None:
        return bytes.fromhex(event.group or "")
    return translation_groups.digest_of(event.group or "")
