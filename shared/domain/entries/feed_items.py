"""Feed items and titles: which events put a page on top of the feeds of its site (PROTOCOL F11)."""

from __future__ import annotations

from dataclasses import replace

from shared.domain import deferral
from shared.domain.batch_state import BatchState, Changes
from shared.domain.entries.group_alternates import Links
from shared.domain.page_record import PageRecord
from shared.events.event import Event
from shared.sitemap import feed_writer, fragments
from shared.sitemap.entry import Entry
from shared.sitemap.extensions.alternates import Alternates


def put(
    state: BatchState,
    changes: Changes,
    event: Event,
    entry: Entry,
    digest: bytes,
    before: PageRecord | None,
    links: Links | None,
    *,
    updated: tuple[int, int],
    titled: bool = False,
) -> bool:
    """Put the page on top of the feeds and return True, if the event changes its own content.

    `digest` is that of `entry`; `updated` is the event's version and arrival (ms since 1970).
    `titled`: the title of a page that the feeds lack is a change of its content.
    Changes caused by other pages of its group, or by the clock, do not count.
    """
    listed, title = state.feed[entry.loc], title_of(event)
    description = event.description or ""
    stated, own = replace(entry, videos=event.videos, alternates=event.alternates), digest
    if stated != entry:
        own = fragments.digest(fragments.render(stated))
    if before and before.live:
        if listed:
            same = listed[1:] == (own, title, description)
        elif titled and title:
            same = False
        elif links:
            same = not event.alternates and digest_with(entry, digest, links.had) == before.digest
        else:
            same = digest_with(entry, digest, event.alternates) == before.digest
        if same:
            return False
    changed_ms = feed_writer.updated_ms(entry.lastmod, *updated)
    # What was saved long before it is published is new to readers.
    changed_ms = max(changed_ms, deferral.appears_ms(event))
    changes.feed[entry.loc] = feed_writer.FeedItem(changed_ms, own, title, description)
    return True


def title_of(event: Event) -> str:
    """The title that `event` states of its page or of its news; empty: none."""
    return event.title or (event.news or {}).get("title", "")


def put_title(state: BatchState, changes: Changes, event: Event) -> bool:
    """Make the title of `event` that of its page; return True if it was another one."""
    loc, title = event.loc or "", title_of(event)
    if state.titles[loc] == title:
        return False
    changes.titles[loc] = title
    return True


def digest_with(entry: Entry, digest: bytes, links: Alternates) -> bytes:
    """The digest of `entry`, whose own is `digest`, with these alternates instead of its own."""
    if links == entry.alternates:
        return digest
    return fragments.digest(fragments.render(replace(entry, alternates=links)))
