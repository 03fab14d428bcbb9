"""State that a batch of events is decided on, and the changes that one decision makes in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.domain.page_record import Claim, PageRecord
from shared.domain.routing import Routing
from shared.domain.translation_groups import GroupMember
from shared.errors import SitemapdError
from shared.sitemap import fragments
from shared.sitemap.extensions.alternates import Alternates
from shared.sitemap.feed_writer import FeedItem

NEWS = "news "
"""Prefix of the name of a page's news entry; the loc follows."""


class UnknownSectionError(SitemapdError):
    """A section without a number; the caller assigns one to `name` and decides again."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the section {name} has no number yet")
        self.name = name


class Policy(NamedTuple):
    """Rules of one site: the `routing` of pages, `hints` if changefreq and priority are listed
    (PROTOCOL M8: off by default), and the time (ms since 1970) by which news and videos expire. New
    pages wait `gate_ms` at most until they were seen, dates `prove_ms` until the page was seen to
    change (domain.looks.held_events); 0: neither waits. `titled`: a page that the feeds lack enters
    them by a title alone, for llms.txt.
    """

    routing: Routing
    hints: bool = False
    now_ms: int = 0
    gate_ms: int = 0
    prove_ms: int = 0
    titled: bool = False


class Outcome(NamedTuple):
    """Outcome of one event: `changed` if published bytes change, and the `reason` in words."""

    changed: bool
    reason: str


@dataclass(slots=True)
class Changes:
    """Changes of one decision; each member goes into the one of the same name in BatchState.

    A page whose fragment is None is not listed any more; one whose `linked` is None left its group.
    """

    pages: dict[str, PageRecord] = field(default_factory=dict)
    claims: dict[bytes, Claim] = field(default_factory=dict)
    fragments: dict[str, bytes | None] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)
    groups: dict[bytes, dict[str, GroupMember]] = field(default_factory=dict)
    linked: dict[str, Alternates | None] = field(default_factory=dict)
    expiry: dict[str, int] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)
    coming: dict[str, bytes] = field(default_factory=dict)
    feed: dict[str, FeedItem | None] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    notified: set[str] = field(default_factory=set)


@dataclass(slots=True)
class BatchState:
    """State of the pages that a batch is about, as stored or as left by its earlier events.

    `pages` and `fragments` are keyed by loc; a page's news entry is NEWS + loc there, present
    (None: unknown) if the site lists news. `sections` are the numbers of the sections, `names` the
    same by number. `placed` holds the sections of pages that this batch lists. `groups` holds the
    members of each translation group that these pages are or will be in, by
    translation_groups.digest_of, `sets` the alternates of each group as the batch was read; a
    member lists these until `linked` holds those that it was rendered with since.
    `expiry` is the time of an entry's next examination (ms since 1970, 0: never), `expired` the
    pages that leave because their time is over, `coming` the news entries to be listed at that
    time (expiry.schedule), and the deferred events (shared.domain.deferral); empty: cancelled.
    `feed` holds the feed item of each page (None: none), no page if the site has no feeds, `titles`
    its title (empty: none), likewise for sites with an HTML sitemap. `listed` are the fragments of
    pages as read, where dates must be proven.
    `notified` are the pages whose change search engines are to be notified of. `former_owners` if
    the claims of the site are stored under the owners of layout 2 (page_record.owner_of).
    """

    sections: Mapping[str, int]
    names: Mapping[int, str] = field(default_factory=dict)
    pages: dict[str, PageRecord | None] = field(default_factory=dict)
    claims: dict[bytes, Claim | None] = field(default_factory=dict)
    fragments: dict[str, bytes] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)
    groups: dict[bytes, dict[str, GroupMember]] = field(default_factory=dict)
    sets: dict[bytes, Alternates] = field(default_factory=dict)
    linked: dict[str, Alternates] = field(default_factory=dict)
    expiry: dict[str, int] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)
    coming: dict[str, bytes] = field(default_factory=dict)
    feed: dict[str, FeedItem | None] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    notified: set[str] = field(default_factory=set)
    former_owners: bool = False
    listed: Mapping[str, bytes] = field(default_factory=dict)

    def section_of(self, key: str) -> int | None:
        """The number of the section that lists `key` after this batch, None if none does."""
        if key in self.placed:
            return self.placed[key]
        page = self.pages.get(key)
        return page.place.section if page and page.place else None

    def relisted(self, key: str, fragment: bytes, changes: Changes) -> None:
        """Add to `changes`: the known page `key` is listed as `fragment`, in its section and with
        its stamp.
        """
        page = changes.pages.get(key) or self.pages[key]
        assert page is not None
        changes.placed[key] = self.section_of(key) or 0
        changes.pages[key] = page._replace(length=len(fragment), digest=fragments.digest(fragment))
        changes.fragments[key] = fragment
