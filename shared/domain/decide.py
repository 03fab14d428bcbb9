"""Decide the effect of events on the state of their batch. Pure: no Redis, no files, no clock.

Guarantee: applying the decisions for the same events in any order ends in the same entries, as
long as equal versions keep their order of arrival, a sender with ids never has two pages at one
URL at one time, and either all events of a page name its section or none does.
Not guaranteed: the order of entries across blocks, which is that of first arrival.
"""

from __future__ import annotations

from typing import NamedTuple

from shared.domain import deferral
from shared.domain.batch_state import (
    NEWS,
    BatchState,
    Changes,
    Outcome,
    Policy,
)
from shared.domain.entries import feed_items, group_alternates, listed_entry, news_entries
from shared.domain.expiry import next_over_ms
from shared.domain.looks import held_events, unlisted_pages
from shared.domain.page_record import Arrival, Claim, PageRecord, is_older, stamp, subjects
from shared.events import answer_fields
from shared.events.event import Event
from shared.sitemap import fragments, w3c_dates


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
    state: BatchState, event: Event, arrival: Arrival, policy: Policy, *, quiet: bool = True,
    when: int | None = None,
) -> Decision:  # fmt: skip
    """Return the decision on `event`. Raises UnknownSectionError, GroupFullError.

    Unless `quiet`, search engines are to be notified of the pages that it changes. `when` is the
    stamp of an event that was deferred (shared.domain.deferral).
    """
    changes = Changes()
    loc, owner = subjects(event, former=state.former_owners)
    if when is None:
        when = stamp(event.version, *arrival)
    claim = state.claims.get(owner) if owner else None
    changed, reason = unlisted_pages.decided(state, changes, event, policy.now_ms) or _decide(
        state, changes, event, (loc, owner, claim), when, arrival, policy
    )
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
    gated = held_events.gated(state, event, policy)
    why = _gone(event) or deferral.absence(event, policy.now_ms) or gated
    if owner:
        if claim and is_older(when, claim.stamp, by_ms):
            return Outcome(changed=False, reason="older than what is known of this id")
        if claim and claim.loc and claim.loc != loc:
            left = _leave(state, changes, claim.loc, owner, when, why, by_ms)
        changes.claims[owner] = Claim(when, "" if why or loc is None else loc)
    if loc is None:
        return left if left.changed else Outcome(changed=False, reason="no page with this id")
    if gated or held_events.is_timed(event):
        wins = _wins(state, loc, owner, when, by_ms)
        arrival = _later(changes, event, when, arrival, policy, why) if wins else arrival
    if why:
        gone = _remove(state, changes, loc, owner, when, why, by_ms)
        return left if left.changed and not gone.changed else gone
    put = _put(state, changes, event, loc, owner, when, arrival, by_ms, policy)
    if event.lastmod is not None and w3c_dates.in_future(event.lastmod, arrival.ms):
        put = put._replace(reason=f"{put.reason}; {FUTURE_LASTMOD}")
    if left.changed:
        return Outcome(changed=True, reason=f"moved: {put.reason}")
    return put


def _later(
    changes: Changes, event: Event, when: int, arrival: Arrival, policy: Policy, why: str
) -> Arrival:
    """Let `event`, whose page is not listed for the reason `why` (empty: it is), be decided again
    later, if it says so or its page waits to be seen; return the arrival that counts.
    """
    if not held_events.is_timed(event):
        if why == held_events.GATED:
            held_events.hold(changes, event, when, policy.now_ms + policy.gate_ms)
        return arrival
    if _gone(event):
        return arrival
    return deferral.take(changes, event, when, arrival, policy.now_ms)


def _wins(state: BatchState, loc: str, owner: bytes, when: int, by_ms: int) -> bool:
    """True if no newer event of the page at `loc` is known."""
    page = state.pages.get(loc)
    return not page or not is_older(when, page.stamp, by_ms) or _vacated(page, owner)


def _gone(event: Event) -> str:
    """The reason for which the page of `event` must not be listed (PROTOCOL L8); empty: none."""
    if event.type == "delete":
        return answer_fields.gone(event.status, event.redirect_to) or "deleted"
    if event.noindex:
        return "noindex"
    if event.canonical is not None and event.canonical != event.loc:
        return "not canonical"
    if event.status is not None or event.redirect_to is not None:
        return answer_fields.gone(event.status, event.redirect_to)
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
    entry = listed_entry.entry_of(changes, event, loc, group, arrival, policy)
    here = state.placed.get(loc) or (page.place.section if page and page.place else None)
    there = listed_entry.section_of(state, event, loc, here, arrival, policy)
    if entry.videos:
        changes.expiry[loc] = next_over_ms(entry.videos)
    owner = owner or (page.owner if page and page.live else b"")
    fragment = fragments.render(entry)
    digest = fragments.digest(fragment)
    place = page.place if page else None
    if held_events.unproven(state, event, page, entry, policy) and page and here == there:
        changes.pages[loc] = page._replace(stamp=when, owner=owner, group=group)
        held_events.hold(changes, event, when, policy.now_ms + policy.prove_ms)
        return Outcome(changed=False, reason=held_events.UNPROVEN)
    changes.pages[loc] = PageRecord(place, len(fragment), when, digest, owner, group)
    same = page is not None and page.live and page.digest == digest and here == there
    put = Outcome(changed=False, reason="same content")
    if not same:
        changes.fragments[loc], changes.placed[loc] = fragment, there
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


def _vacated(page: PageRecord, owner: bytes) -> bool:
    """True if another id left this URL: the time of that says nothing about the page of `owner`.

    Two pages that swap their URLs leave them at two times, and either event may arrive first.
    """
    return page.was_left and bool(owner and page.owner) and page.owner != owner
