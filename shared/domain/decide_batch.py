"""Decide the events of a batch: plain ones here, in place and many times as fast, all others by
`decide`.

Plain is an upsert without extensions, group, feed or news that meets nothing unusual: it is not
older than what is known, moves no page, and has no lastmod in the future. A property test holds
what is decided here to `decide`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple, TypeVar

from shared.domain.batch_state import NEWS, BatchState, Outcome, Policy, UnknownSectionError
from shared.domain.decide import decide, include
from shared.domain.page_record import Arrival, Claim, PageRecord, owner_of, stamp
from shared.domain.routing import DEFAULT_SECTION
from shared.events.event import Event
from shared.sitemap import fragments, w3c_dates

_PLAIN = frozenset(
    {"type", "loc", "id", "section", "version", "lastmod", "changefreq", "priority", "source",
     "kind", "locale"}
)  # fmt: skip
_ADDED, _CHANGED = Outcome(changed=True, reason="added"), Outcome(changed=True, reason="changed")
_SAME = Outcome(changed=False, reason="same content")

_Decided = TypeVar("_Decided")


class ArrivedEvent(NamedTuple):
    """One event of a batch with its arrival; engines are not notified of a `quiet` one."""

    event: Event
    arrival: Arrival
    quiet: bool = True


def copied(state: BatchState) -> BatchState:
    """Return a state that can be changed while `state` stays as it is."""
    return replace(
        state, pages={**state.pages}, claims={**state.claims}, fragments={**state.fragments},
        placed={**state.placed}, groups={**state.groups}, linked={**state.linked},
        expiry={**state.expiry}, expired={*state.expired}, coming={**state.coming},
        feed={**state.feed}, titles={**state.titles}, notified={*state.notified},
    )  # fmt: skip


def decide_all(
    state: BatchState, batch: Iterable[ArrivedEvent], policy: Policy
) -> tuple[list[Outcome], BatchState]:
    """Decide the events of a batch in their order, each on the state that those before it leave.

    Return the outcomes and the state after all of them; `state` stays as it is. Raises
    UnknownSectionError, GroupFullError.
    """
    after = copied(state)
    outcomes = []
    for event, arrival, quiet in batch:
        outcome = decide_plain(after, event, arrival, policy)
        if outcome is None:
            changed, reason, changes = decide(after, event, arrival, policy, quiet=quiet)
            include(after, changes)
            outcome = Outcome(changed, reason)
        elif outcome.changed and not quiet and event.loc is not None:
            after.notified.add(event.loc)
        outcomes.append(outcome)
    return outcomes, after


def with_sections(
    decided: Callable[[], _Decided], number: Callable[[Iterable[str]], object]
) -> _Decided:
    """Return what `decided` returns. Where that misses a section, `number` gives this a number, and
    it is decided again.
    """
    while True:
        try:
            return decided()
        except UnknownSectionError as error:
            number([error.name])


def decide_plain(
    state: BatchState, event: Event, arrival: Arrival, policy: Policy
) -> Outcome | None:
    """Make the decision on `event` a part of `state`; None, with nothing changed, if only `decide`
    can decide it.
    """
    loc, page = event.loc, state.pages.get(event.loc or "")
    if loc is None or policy.gate_ms or policy.prove_ms or not _is_plain(state, event, page):
        return None
    when, owner = stamp(event.version, *arrival), b""
    if page and when < page.stamp:
        return None
    if event.id is not None:
        who = (event.source, event.kind, event.id, event.locale)
        owner = owner_of(*who, former=state.former_owners)
        claim = state.claims.get(owner)
        if claim and (when < claim.stamp or claim.loc != loc):
            return None
    lastmod, listed = event.lastmod, page is not None and page.live
    if lastmod is not None and w3c_dates.in_future(lastmod, arrival.ms):
        return None
    place = page.place if page else None
    here = state.placed.get(loc) or (place.section if place else None)
    name = event.section or (None if here is None else state.names.get(here)) or DEFAULT_SECTION
    there = state.sections.get(name)
    if there is None or name not in policy.routing.unruled:
        return None
    hints = (event.changefreq, event.priority) if policy.hints else (None, None)
    fragment = fragments.render_plain(loc, lastmod, *hints)
    digest = fragments.digest(fragment)
    if owner:
        state.claims[owner] = Claim(when, loc)
    elif page and listed:
        owner = page.owner
    state.pages[loc] = PageRecord(place, len(fragment), when, digest, owner)
    if page and listed and page.digest == digest and here == there:
        return _SAME
    state.fragments[loc], state.placed[loc] = fragment, there
    return _CHANGED if listed else _ADDED


def _is_plain(state: BatchState, event: Event, page: PageRecord | None) -> bool:
    if event.type != "upsert" or not _PLAIN.issuperset(vars(event)) or (page and page.group):
        return False
    if state.titles.get(event.loc or ""):
        return False
    return event.loc not in state.feed and f"{NEWS}{event.loc}" not in state.pages
