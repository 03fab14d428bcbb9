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
    if section not in state.sections:
        raise UnknownSectionError(section)
    if policy.now_ms < news.appears_ms(event.news):
        expiry.schedule(changes, NEWS + entry.loc, _twin(entry, event.news), section, when)
        return drop(state, changes, entry.loc, when)
    if not is_current(event.news, policy.now_ms):
        return drop(state, changes, entry.loc, when)
    return _list(state, changes, entry, event.news, state.sections[section], when)


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
    page = state.pages.get(NEWS + entry.loc)
    if page is None or page.live or page.place is None or page.stamp != when:
        return
    if is_current(article, now_ms):
        _list(state, changes, entry, article, page.place.section, when)


def _twin(entry: Entry, article: News) -> Entry:
    """Return the page as its news entry."""
    return Entry(entry.loc, entry.lastmod, images=entry.images, news=article)


def _list(
    state: BatchState, changes: Changes, entry: Entry, article: News, there: int, when: int
) -> str:
    key = NEWS + entry.loc
    page, here = state.pages[key], state.section_of(key)
    changes.expiry[key] = news.leaves_ms(article)
    fragment = fragments.render(_twin(entry, article))
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
