"""Decide the effect of one event on the state of its batch. Pure: no Redis, no files, no clock.

Guarantee: applying the decisions for the same events in any order ends in the same entries, as
long as equal versions keep their order of arrival, a sender with ids never has two pages at one
URL at one time, and either all events of a page name its section or none does.
Not guaranteed: the order of entries across blocks, which is that of first arrival.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from shared.domain import expiry, group_alternates, translation_groups
from shared.domain.batch_state import NEWS, Arrival, BatchState, Policy, subjects
from shared.domain.expiry import is_over, next_over_ms
from shared.domain.group_alternates import Links
from shared.domain.page_record import Claim, PageRecord, is_older, stamp
from shared.events.event import Event
from shared.sitemap import feed_writer, fragments, w3c_dates
from shared.sitemap.entry import Entry
from shared.sitemap.extensions import news
from shared.sitemap.extensions.alternates import Alternates
from shared.sitemap.extensions.news import News


class Decision(NamedTuple):
    """Outcome of one event: `changed` if published bytes change, and the `reason` in words."""

    changed: bool
    reason: str


FUTURE_LASTMOD = "its lastmod lies in the future and is left out"


def decide(
    known: BatchState, event: Event, arrival: Arrival, policy: Policy, *, quiet: bool = True
) -> Decision:
    """Decide `event`, record the outcome in `known`. Raises UnknownSectionError, GroupFullError.

    Unless `quiet`, search engines are to be notified of the pages that it changes.
    """
    if quiet:
        return _decide(known, event, arrival, policy)
    claim = known.claims.get(subjects(event)[1])
    decision = _decide(known, event, arrival, policy)
    if decision.changed:
        left = claim.loc if claim else ""
        known.told.update(loc for loc in (event.loc, left) if loc)
    return decision


def _decide(known: BatchState, event: Event, arrival: Arrival, policy: Policy) -> Decision:
    loc, owner = subjects(event)
    when = stamp(event.version, *arrival)
    by_ms = _as_of(arrival, policy)
    left = Decision(changed=False, reason="")
    why = _gone(event)
    if owner:
        claim = known.claims.get(owner)
        if claim and is_older(when, claim.stamp, by_ms):
            return Decision(changed=False, reason="older than what is known of this id")
        if claim and claim.loc and claim.loc != loc:
            left = _leave(known, claim.loc, owner, when, why, by_ms)
        known.claims[owner] = Claim(when, "" if why or loc is None else loc)
    if loc is None:
        return left if left.changed else Decision(changed=False, reason="no page with this id")
    if why:
        gone = _remove(known, loc, owner, when, why, by_ms)
        return left if left.changed and not gone.changed else gone
    put = _put(known, event, loc, owner, when, arrival, policy)
    if event.lastmod is not None and w3c_dates.in_future(event.lastmod, arrival.ms):
        put = put._replace(reason=f"{put.reason}; {FUTURE_LASTMOD}")
    if left.changed:
        return Decision(changed=True, reason=f"moved: {put.reason}")
    return put


def _as_of(arrival: Arrival, policy: Policy) -> int:
    """The time (ms since 1970) against which a stored version is too far ahead: an event may wait
    longer than a version may lie ahead, and later arrivals count.
    """
    return max(arrival.ms, policy.now_ms)


def _gone(event: Event) -> str:
    """The reason for which the page of `event` must not be listed (PROTOCOL L8); empty: none."""
    if event.type == "delete":
        return "deleted"
    if event.noindex:
        return "noindex"
    if event.canonical is not None and event.canonical != event.loc:
        return "not canonical"
    return ""


def _leave(known: BatchState, loc: str, owner: bytes, when: int, why: str, by_ms: int) -> Decision:
    """Remove the page of `owner` from `loc`, unless `loc` has another owner now."""
    page = known.pages.get(loc)
    if not page or page.owner != owner:
        return Decision(changed=False, reason="its old URL belongs to another page by now")
    return _remove(known, loc, owner, when, why or "moved", by_ms)


def _remove(known: BatchState, loc: str, owner: bytes, when: int, why: str, by_ms: int) -> Decision:
    page = known.pages.get(loc)
    if page and is_older(when, page.stamp, by_ms):
        if page.live and owner and page.owner == owner:
            # The listed page came later and without an id; its old id has left all the same, as if
            # this event had arrived first.
            known.pages[loc] = page._replace(owner=b"")
        return Decision(changed=False, reason="older than what is known of this URL")
    if page and page.live and owner and page.owner and page.owner != owner:
        return Decision(changed=False, reason="this URL belongs to another page by now")
    if page and page.group:
        group_alternates.leave(known, loc, page.group)
    # A tombstone even for an unknown page: an older event may still arrive.
    known.pages[loc] = PageRecord(page.place if page else None, 0, when, bytes(5), owner)
    known.fragments.pop(loc, None)
    if loc in known.feed:
        known.feed[loc] = None
    _drop_news(known, loc, when)
    if page and page.live:
        return Decision(changed=True, reason=why)
    return Decision(changed=False, reason=f"{why}, and it was not listed")


def _put(
    known: BatchState,
    event: Event,
    loc: str,
    owner: bytes,
    when: int,
    arrival: Arrival,
    policy: Policy,
) -> Decision:
    page = known.pages.get(loc)
    older = page is not None and is_older(when, page.stamp, _as_of(arrival, policy))
    if page and older and not _vacated(page, owner):
        return Decision(changed=False, reason="older than what is known of this URL")
    group, links = b"", None
    if event.group or (page and page.group):
        links = group_alternates.of_page(known, loc)
        group = group_alternates.enter(known, event, when)
    entry = _entry(known, event, loc, group, arrival, policy)
    here = known.section_of(loc)
    name = None if here is None else known.name(here)
    there = known.number(policy.routing.section(event, loc, name, arrival.ms))
    if entry.videos:
        known.expiry[loc] = next_over_ms(entry.videos)
    owner = owner or (page.owner if page and page.live else b"")
    page_is = _list(known, loc, entry, there, when, owner, group)
    if group:
        known.linked[loc] = entry.alternates
    if page and links:
        same = here == there and _says_the_same(known, entry, page, links)
        page_is = Decision(not same, "same content" if same else "changed")
    news_is = _news(known, event, entry, when, policy) if policy.routing.news else ""
    fed = loc in known.feed and _feed(known, event, entry, page, links, when, arrival)
    if page_is.changed or not (news_is or fed):
        return page_is
    return Decision(changed=True, reason=news_is or "changed in the feeds")


def _list(
    known: BatchState,
    key: str,
    entry: Entry,
    there: int,
    when: int,
    owner: bytes = b"",
    group: bytes = b"",
) -> Decision:
    """List `entry` under the name `key` in the section `there`."""
    page, here = known.pages.get(key), known.section_of(key)
    fragment = fragments.render(entry)
    digest = fragments.digest(fragment)
    place = page.place if page else None
    known.pages[key] = PageRecord(place, len(fragment), when, digest, owner, group)
    if page and page.live and page.digest == digest and here == there:
        return Decision(changed=False, reason="same content")
    known.fragments[key] = fragment
    known.placed[key] = there
    return Decision(changed=True, reason="changed" if page and page.live else "added")


def _says_the_same(known: BatchState, entry: Entry, before: PageRecord, links: Links) -> bool:
    """True if `entry` is the page as it was, with the links that were due: the decision on an event
    must not depend on the other events of its batch.
    """
    same_links = entry.alternates == links.due
    return same_links and _rendered(known, entry, links.had) == before.digest


def _rendered(known: BatchState, entry: Entry, links: Alternates) -> bytes:
    """The digest of `entry`, which has just been listed, with these links instead of its own."""
    page = known.pages[entry.loc]
    if links == entry.alternates and page is not None:
        return page.digest
    return fragments.digest(fragments.render(replace(entry, alternates=links)))


def _feed(
    known: BatchState,
    event: Event,
    entry: Entry,
    before: PageRecord | None,
    links: Links | None,
    when: int,
    arrival: Arrival,
) -> bool:
    """Put the page on top of the feeds and return True, if the event changes its own content.

    Changes caused by other pages of its group, or by the clock, do not count.
    """
    listed, page = known.feed[entry.loc], known.pages[entry.loc]
    assert page is not None
    digest, title = page.digest, event.title or (event.news or {}).get("title", "")
    said = replace(entry, videos=event.videos, alternates=event.alternates)
    if said != entry:
        digest = fragments.digest(fragments.render(said))
    if before and before.live:
        if listed:
            same = listed[1:] == (digest, title)
        elif links:
            same = not event.alternates and _rendered(known, entry, links.had) == before.digest
        else:
            same = _rendered(known, entry, event.alternates) == before.digest
        if same:
            return False
    updated = feed_writer.updated_ms(entry.lastmod, when >> 16, arrival.ms)
    known.feed[entry.loc] = feed_writer.FeedItem(updated, digest, title)
    return True


def _vacated(page: PageRecord, owner: bytes) -> bool:
    """True if another id left this URL: the time of that says nothing about the page of `owner`.

    Two pages that swap their URLs leave them at two times, and either event may arrive first.
    """
    return not page.live and bool(owner and page.owner) and page.owner != owner


def _news(known: BatchState, event: Event, entry: Entry, when: int, policy: Policy) -> str:
    """List the page as news while it is current (PROTOCOL W4), besides its normal entry.

    Return the change in words, empty if none. The news entry has no version: it follows the page.
    """
    key = NEWS + entry.loc
    if key not in known.pages:
        return ""
    section = policy.routing.news_section(event) if event.news else None
    if event.news is None or section is None:
        return _drop_news(known, entry.loc, when)
    twin = Entry(entry.loc, entry.lastmod, images=entry.images, news=event.news)
    if policy.now_ms < news.appears_ms(event.news):
        expiry.schedule(known, key, twin, section, when)
        return _drop_news(known, entry.loc, when)
    if not is_current(event.news, policy.now_ms):
        return _drop_news(known, entry.loc, when)
    known.expiry[key] = news.leaves_ms(event.news)
    listed = _list(known, key, twin, known.number(section), when)
    return f"{listed.reason} as news" if listed.changed else ""


def _drop_news(known: BatchState, loc: str, when: int) -> str:
    page = known.pages.get(NEWS + loc)
    if page is None or not page.live:
        return ""
    known.pages[NEWS + loc] = PageRecord(page.place, 0, when, bytes(5), b"")
    known.fragments.pop(NEWS + loc, None)
    return "no news any more"


def _entry(
    known: BatchState, event: Event, loc: str, group: bytes, arrival: Arrival, policy: Policy
) -> Entry:
    lastmod = event.lastmod
    if lastmod is not None and w3c_dates.in_future(lastmod, arrival.ms):
        lastmod = None  # PROTOCOL M5: worth less than none
    changefreq, priority = (event.changefreq, event.priority) if policy.hints else (None, None)
    if not (event.images or event.videos or event.alternates or group):
        return Entry(loc, lastmod, changefreq, priority)
    linked = event.alternates
    if group:
        linked = translation_groups.listed_by(
            loc, translation_groups.alternates(known.groups[group])
        )
    shown = tuple(video for video in event.videos if not is_over(video, policy.now_ms))
    return Entry(loc, lastmod, changefreq, priority, event.images, shown, None, linked)


def is_current(article: News, now_ms: int) -> bool:
    """True if an article is news at `now_ms` (ms since 1970; PROTOCOL W4): from its publication
    until WINDOW_MS after it.
    """
    return news.appears_ms(article) <= now_ms < news.leaves_ms(article)
