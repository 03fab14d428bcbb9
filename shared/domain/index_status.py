"""Answers of a search engine about a page, and whether it knows what was published. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

PRECISION_MS = 1_000
"""Milliseconds by which a stated crawl may seem earlier than it was: engines state seconds."""


class IndexState(StrEnum):
    """State of a page in the index of an engine, as it says."""

    LISTED = "listed"
    """In its index; Bing states no more than a fetch that succeeded."""
    CRAWLED = "crawled"
    """Fetched, and not in the index (yet)."""
    DISCOVERED = "discovered"
    EXCLUDED = "excluded"
    UNKNOWN = "unknown"
    REFUSED = "refused"
    """The engine gives no answer about this page."""


class IndexStatus(NamedTuple):
    """Answer of an engine about a page: its `state`, its own words, its last crawl (ms since 1970;
    0: none, or not stated).
    """

    state: IndexState
    said: str
    crawled_ms: int = 0


class PublishedPage(NamedTuple):
    """A page that was published: `changed_ms` is the version of its event, `published_ms` the time
    of the file that lists it (both ms since 1970), `new` if no file had listed it before.
    """

    section: str
    changed_ms: int
    published_ms: int
    new: bool


class EngineAnswer(NamedTuple):
    """Last answer of an engine about a page; times in ms since 1970.

    `known_ms` is when an answer first said that the engine knows what was published; 0: none did.
    """

    asked_ms: int
    status: IndexStatus
    known_ms: int = 0


def knows(status: IndexStatus, page: PublishedPage) -> bool:
    """Return True if an engine with this answer knows what was published.

    A changed page is known by a crawl after its publish. A new page is known as soon as it is
    listed: it may be older than its sitemap.
    """
    if status.state is not IndexState.LISTED:
        return False
    return page.new or status.crawled_ms + PRECISION_MS > page.published_ms


def next_ask_ms(page: PublishedPage, now_ms: int, least_ms: int) -> int:
    """Return when an engine is asked again about a page that it did not know at `now_ms`: after
    half of the page's age, and `least_ms` at least.
    """
    return now_ms + max(least_ms, (now_ms - page.published_ms) // 2)
