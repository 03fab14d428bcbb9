"""Entry and section that an event gives its page. Pure, like shared.domain.decide."""

from __future__ import annotations

from shared.domain import translation_groups
from shared.domain.batch_state import BatchState, Changes, Policy, UnknownSectionError
from shared.domain.expiry import is_over
from shared.domain.page_record import Arrival
from shared.domain.routing import DEFAULT_SECTION
from shared.events.event import Event
from shared.sitemap import w3c_dates
from shared.sitemap.entry import Entry


def section_of(
    state: BatchState, event: Event, loc: str, here: int | None, arrival: Arrival, policy: Policy
) -> int:
    """Return the number of the section that lists the page at `loc` after `event`; `here`: that
    before it. Raises UnknownSectionError.
    """
    listed_in = None if here is None else state.names.get(here)
    name = event.section or listed_in or DEFAULT_SECTION
    if name not in policy.routing.unruled:
        name = policy.routing.section(event, loc, listed_in, arrival.ms, policy.now_ms)
    if name not in state.sections:
        raise UnknownSectionError(name)
    return state.sections[name]


def entry_of(
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
