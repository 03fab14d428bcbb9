"""Events that wait for a look at their page: a new page until it was seen, where a gate is set, and
a date until the page has changed, where dates must be proven.

Each is deferred (shared.domain.deferral) until its deadline, and made due or dropped by a look.
"""

from __future__ import annotations

from dataclasses import replace

from shared.domain.batch_state import BatchState, Changes, Policy
from shared.domain.deferral import AT, Deferral
from shared.domain.page_record import PageRecord
from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.entry import Entry

GATED = "a new page waits until it was seen"
UNPROVEN = "only its date differs, which waits until the page was seen to change"


def gated(state: BatchState, event: Event, policy: Policy) -> str:
    """The reason for which the page of `event` must not be listed before it was seen; empty: none.

    A page that is or was listed passes, and one that only looks have taken out.
    """
    if not policy.gate_ms or event.type != "upsert" or is_timed(event) or event.loc is None:
        return ""
    page = state.pages.get(event.loc)
    return "" if page and (page.live or page.place or not page.was_left) else GATED


def unproven(
    state: BatchState, event: Event, page: PageRecord | None, entry: Entry, policy: Policy
) -> bool:
    """True if `entry` differs from what is listed of a page in its date alone."""
    if not policy.prove_ms or page is None or not page.live or event.news or is_timed(event):
        return False
    listed = state.fragments.get(entry.loc) or state.listed.get(entry.loc)
    if listed is None or fragments.digest(listed) != page.digest:
        return False
    before = fragments.parse(listed).lastmod
    return before != entry.lastmod and fragments.render(replace(entry, lastmod=before)) == listed


def hold(changes: Changes, event: Event, stamp: int, due_ms: int) -> None:
    """Add to `changes` that `event`, which won with its `stamp`, is decided again at `due_ms`."""
    key = f"{AT}{event.loc}"
    changes.coming[key] = Deferral(stamp, due_ms, event).pack()
    changes.expiry[key] = due_ms


def is_timed(event: Event) -> bool:
    """True for an event that says itself when its page is listed."""
    return event.publish_at is not None or event.expires is not None
