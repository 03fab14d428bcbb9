"""News entries: a page is listed a second time, in a news section, while it is current (PROTOCOL
W4). The news entry has no version: it follows the page.
"""

from __future__ import annotations

from shared.domain import expiry
from shared.domain.batch_state import NEWS, BatchState, Changes, Policy, UnknownSectionError
from shared.domain.page_record import PageRecord
from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.sitemap.extensions import news
from shared.sitemap.extensions.news import News


def put(
    state: BatchState, changes: Changes, event: Event, entry: Entry, when: int, policy: Policy
) -> str:
    """List the page as news while it is current; return the change in words, empty if none.

    `state` must hold its news entry. `when` is the stamp of the event. Raises UnknownSectionError.
    """
    section = policy.routing.news_section(event) if event.news else None
    if event.news is None or section is None:
        return drop(state, changes, entry.loc, when)
    twin = Entry(entry.loc, entry.lastmod, images=entry.images, news=event.news)
    if section not in state.sections:
        raise UnknownSectionError(section)
    key = NEWS + entry.loc
    if policy.now_ms < news.appears_ms(event.news):
        expiry.schedule(changes, key, twin, section, when)
        return drop(state, changes, entry.loc, when)
    if not is_current(event.news, policy.now_ms):
        return drop(state, changes, entry.loc, when)
    changes.expiry[key] = news.leaves_ms(event.news)
    return _list(state, changes, key, twin, state.sections[section], when)


def drop(state: BatchState, changes: Changes, loc: str, when: int) -> str:
    """Take the page at `loc` out of the news; return the change in words, empty if none."""
    page = state.pages.get(NEWS + loc)
    if page is None or not page.live:
        return ""
    changes.pages[NEWS + loc] = PageRecord(page.place, 0, when, bytes(5), b"")
    changes.fragments[NEWS + loc] = None
    return "no news any more"


def put_back(
    state: BatchState, changes: Changes, entry: Entry, article: News, when: int, now_ms: int
) -> None:
    """List the page of `entry` as news again, where `drop` took it out with the stamp `when`, if it
    is current at `now_ms` (since 1970).
    """
    key = NEWS + entry.loc
    page = state.pages.get(key)
    if page is None or page.live or page.place is None or page.stamp != when:
        return
    if is_current(article, now_ms):
        twin = Entry(entry.loc, entry.lastmod, images=entry.images, news=article)
        changes.expiry[key] = news.leaves_ms(article)
        _list(state, changes, key, twin, page.place.section, when)


def _list(state: BatchState, changes: Changes, key: str, twin: Entry, there: int, when: int) -> str:
    page, here = state.pages[key], state.section_of(key)
    fragment = fragments.render(twin)
    digest, place = fragments.digest(fragment), page.place if page else None
    changes.pages[key] = PageRecord(place, len(fragment), when, digest, b"")
    if page and page.live and page.digest == digest and here == there:
        return ""
    changes.fragments[key], changes.placed[key] = fragment, there
    return "changed as news" if page and page.live else "added as news"


def is_current(article: News, now_ms: int) -> bool:
    """True if an article is news at `now_ms` (ms since 1970; PROTOCOL W4): from its publication
    until WINDOW_MS after it.
    """
    return news.appears_ms(article) <= now_ms < news.leaves_ms(article)
