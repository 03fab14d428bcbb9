"""Decide the effect of events on the state of their batch. Pure: no Redis, no files, no clock.

Guarantee: applying the decisions for the same events in any order ends in the same entries, as
long as equal versions keep their order of arrival, a sender with ids never has two pages at one
URL at one time, and either all events of a page name its section or none does.
Not guaranteed: the order of entries across blocks, which is that of first arrival.
"""

from __future__ import annotations

from typing import NamedTuple

from shared.domain import feed_items, group_alternates, news_entries, translation_groups
from shared.domain.batch_state import (
    NEWS,
    BatchState,
    Changes,
    Outcome,
    Policy,
    UnknownSectionError,
)
from shared.domain.expiry import is_over, next_over_ms
from shared.domain.page_record import Arrival, Claim, PageRecord, is_older, stamp, subjects
from shared.domain.routing import DEFAULT_SECTION
from shared.events.event import Event
from shared.sitemap import fragments, w3c_dates
from shared.sitemap.entry import Entry


class Decision(NamedTuple):
    """Outcome of one event: `changed` if published bytes change, the `reason` in words, and the
    `changes` of the batch state.
    """

    changed: bool
    reason: str
    changes: Changes


FUTURE_LASTMOD = "its lastmod lies in the future and is left out"


def include(state: BatchState, changes: Changes) -> None:
    """Make `changes` a part of `state`."""
    state.pages.update(changes.pages)
    state.claims.update(changes.claims)
    state.placed.update(changes.placed)
    state.groups.update(changes.groups)
    state.expiry.update(changes.expiry)
    state.expired |= changes.expired
    state.coming.update(changes.coming)
    state.feed.update(changes.feed)
    state.titles.update(changes.titles)
    state.notified |= changes.notified
    for key, fragment in changes.fragments.items():
        if fragment is None:
            state.fragments.pop(key, None)
        else:
            state.fragments[key] = fragment
    for loc, links in changes.linked.items():
        if links is None:
            state.linked.pop(loc, None)
        else:
            state.linked[loc] = links


def decide(
    state: BatchState, event: Event, arrival: Arrival, policy: Policy, *, quiet: bool = True
) -> Decision:
    """Return the decision on `event`. Raises UnknownSectionError, GroupFullError.

    Unless `quiet`, search engines are to be notified of the pages that it changes.
    """
    changes = Changes()
    loc, owner = subjects(event, former=state.former_owners)
    when = stamp(event.version, *arrival)
    claim = state.claims.get(owner) if owner else None
    changed, reason = _decide(state, changes, event, (loc, owner, claim), when, arrival, policy)
    if changed and not quiet:
        changes.notified.update(filter(None, (loc, claim and claim.loc)))
    return Decision(changed, reason, changes)


def _decide(
    state: BatchState,
    changes: Changes,
    event: Event,
    subject: tuple[str | None, bytes, Claim | None],
    when: int,
    arrival: Arrival,
    policy: Policy,
) -> Outcome:
    loc, owner, claim = subject
    # An event may wait longer than a version may lie ahead of its arrival, and later arrivals
    # count: the time (ms since 1970) against which a stored version is too far ahead.
    by_ms = max(arrival.ms, policy.now_ms)
    left = Outcome(changed=False, reason="")
    why = _gone(event)
    if owner:
        if claim and is_older(when, claim.stamp, by_ms):
            return Outcome(changed=False, reason="older than what is known of this id")
        if claim and claim.loc and claim.loc != loc:
            left = _leave(state, changes, claim.loc, owner, when, why, by_ms)
        changes.claims[owner] = Claim(when, "" if why or loc is None else loc)
    if loc is None:
        return left if left.changed else Outcome(changed=False, reason="no page with this id")
    if why:
        gone = _remove(state, changes, loc, owner, when, why, by_ms)
        return left if left.changed and not gone.changed else gone
    put = _put(state, changes, event, loc, owner, when, arrival, by_ms, policy)
    if event.lastmod is not None and w3c_dates.in_future(event.lastmod, arrival.ms):
        put = put._replace(reason=f"{put.reason}; {FUTURE_LASTMOD}")
    if left.changed:
        return Outcome(changed=True, reason=f"moved: {put.reason}")
    return put


def _gone(event: Event) -> str:
    """The reason for which the page of `event` must not be listed (PROTOCOL L8); empty: none."""
    if event.type == "delete":
        return "deleted"
    if event.noindex:
        return "noindex"
    if event.canonical is not None and event.canonical != event.loc:
        return "not canonical"
    return ""


def _leave(
    state: BatchState, changes: Changes, loc: str, owner: bytes, when: int, why: str, by_ms: int
) -> Outcome:
    """Remove the page of `owner` from `loc`, unless `loc` has another owner now."""
    page = state.pages.get(loc)
    if not page or page.owner != owner:
        return Outcome(changed=False, reason="its old URL belongs to another page by now")
    return _remove(state, changes, loc, owner, when, why or "moved", by_ms)


def _remove(
    state: BatchState, changes: Changes, loc: str, owner: bytes, when: int, why: str, by_ms: int
) -> Outcome:
    page = state.pages.get(loc)
    if page and is_older(when, page.stamp, by_ms):
        if page.live and owner and page.owner == owner:
            # The listed page came later and without an id; its old id has left all the same, as if
            # this event had arrived first.
            changes.pages[loc] = page._replace(owner=b"")
        return Outcome(changed=False, reason="older than what is known of this URL")
    if page and page.live and owner and page.owner and page.owner != owner:
        return Outcome(changed=False, reason="this URL belongs to another page by now")
    if page and page.group:
        group_alternates.leave(state, changes, loc, page.group)
    # A tombstone even for an unknown page: an older event may still arrive.
    changes.pages[loc] = PageRecord(page.place if page else None, 0, when, bytes(5), owner)
    changes.fragments[loc] = None
    if loc in state.feed:
        changes.feed[loc] = None
    if state.titles.get(loc):
        changes.titles[loc] = ""
    if NEWS + loc in state.pages:
        news_entries.drop(state, changes, loc, when)
    if page and page.live:
        return Outcome(changed=True, reason=why)
    return Outcome(changed=False, reason=f"{why}, and it was not listed")


def _put(
    state: BatchState,
    changes: Changes,
    event: Event,
    loc: str,
    owner: bytes,
    when: int,
    arrival: Arrival,
    by_ms: int,
    policy: Policy,
) -> Outcome:
    page = state.pages.get(loc)
    if page and is_older(when, page.stamp, by_ms) and not _vacated(page, owner):
        return Outcome(changed=False, reason="older than what is known of this URL")
    group, links = b"", None
    if event.group or (page and page.group):
        links = group_alternates.of_page(state, changes, loc)
        group = group_alternates.enter(state, changes, event, when)
    entry = _entry(changes, event, loc, group, arrival, policy)
    here = state.placed.get(loc) or (page.place.section if page and page.place else None)
    there = _section(state, event, loc, here, arrival, policy)
    if entry.videos:
        changes.expiry[loc] = next_over_ms(entry.videos)
    owner = owner or (page.owner if page and page.live else b"")
    fragment = fragments.render(entry)
    digest = fragments.digest(fragment)
    place = page.place if page else None
    changes.pages[loc] = PageRecord(place, len(fragment), when, digest, owner, group)
    same = page is not None and page.live and page.digest == digest and here == there
    if not same:
        changes.fragments[loc], changes.placed[loc] = fragment, there
    put = Outcome(not same, "same content")
    if not same:
        put = Outcome(changed=True, reason="changed" if page and page.live else "added")
    if group:
        changes.linked[loc] = entry.alternates
    if page and links:
        # The decision on an event must not depend on the other events of its batch: the page is the
        # same if it is as it was, with the links that were due.
        had = entry.alternates == links.due and here == there
        had = had and feed_items.digest_with(entry, digest, links.had) == page.digest
        put = Outcome(not had, "same content" if had else "changed")
    news_is = ""
    if NEWS + loc in state.pages:
        news_is = news_entries.put(state, changes, event, entry, when, policy)
    fed = loc in state.feed and feed_items.put(
        state, changes, event, entry, digest, page, links, updated=(when >> 16, arrival.ms),
        titled=policy.titled,
    )  # fmt: skip
    retitled = _retitle(state, changes, event, fragment, there)
    if put.changed or not (news_is or fed or retitled):
        return put
    only = "changed in the feeds" if fed else "changed in its title"
    return Outcome(changed=True, reason=news_is or only)


def _retitle(
    state: BatchState, changes: Changes, event: Event, fragment: bytes, section: int
) -> bool:
    """Keep the title of a site with an HTML sitemap; True if it is another. Then the page is listed
    anew, though its `fragment` may be the same: so its block is known to the publisher.
    """
    loc = event.loc or ""
    if loc not in state.titles or not feed_items.put_title(state, changes, event):
        return False
    changes.fragments[loc], changes.placed[loc] = fragment, section
    return True


def _section(
    state: BatchState, event: Event, loc: str, here: int | None, arrival: Arrival, policy: Policy
) -> int:
    """The number of the section that lists the page at `loc` after `event`; `here`: before it."""
    listed_in = None if here is None else state.names.get(here)
    name = event.section or listed_in or DEFAULT_SECTION
    if name not in policy.routing.unruled:
        name = policy.routing.section(event, loc, listed_in, arrival.ms)
    if name not in state.sections:
        raise UnknownSectionError(name)
    return state.sections[name]


def _vacated(page: PageRecord, owner: bytes) -> bool:
    """True if another id left this URL: the time of that says nothing about the page of `owner`.

    Two pages that swap their URLs leave them at two times, and either event may arrive first.
    """
    return not page.live and bool(owner and page.owner) and page.owner != owner


def _entry(
    changes: Changes,
    event: Event,
    loc: str,
    group: bytes,
    arrival: Arrival,
    policy: Policy,
) -> Entry:
    lastmod = event.lastmod
    if lastmod is not None and w3c_dates.in_future(lastmod, arrival.ms):
        lastmod = None  # PROTOCOL M5: worth less than none
    changefreq, priority = (event.changefreq, event.priority) if policy.hints else (None, None)
    if not (event.images or event.videos or event.alternates or group):
        return Entry(loc, lastmod, changefreq, priority)
    linked = event.alternates
    if group:
        members = changes.groups[group]
        linked = translation_groups.listed_by(loc, translation_groups.alternates(members))
    shown = tuple(video for video in event.videos if not is_over(video, policy.now_ms))
    return Entry(loc, lastmod, changefreq, priority, event.images, shown, None, linked)
