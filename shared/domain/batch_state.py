"""The state that a batch of events is decided on, and the net changes that result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.domain.page_record import PLACE_BYTES, Claim, PageRecord, digest_of, owner_of
from shared.domain.routing import Routing
from shared.domain.translation_groups import GroupMember
from shared.errors import SitemapdError
from shared.events.event import Event
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
    (PROTOCOL M8: off by default), and the time (ms since 1970) by which news and videos expire.
    """

    routing: Routing
    hints: bool = False
    now_ms: int = 0


class Arrival(NamedTuple):
    """Arrival of an event: its id in the inbox, as ms since 1970 and sequence number."""

    ms: int
    sequence: int

    @classmethod
    def of(cls, stream_id: str) -> Arrival:
        """The arrival of the stream id `ms-sequence`."""
        ms, _, sequence = stream_id.partition("-")
        return cls(int(ms), int(sequence))


@dataclass(slots=True)
class BatchState:
    """Stored state of the pages that a batch is about, updated decision by decision.

    `pages` and `fragments` are keyed by loc; a page's news entry is NEWS + loc there, present
    (None: unknown) if the site lists news. `groups` holds the members of each translation group
    that these pages are or will be in, by translation_groups.digest_of, `sets` the alternates of
    each group as the batch was read; a member lists these until `linked` holds those that it was
    rendered with since.
    `expiry` is the time of an entry's next examination (ms since 1970, 0: never), `expired` the
    pages that leave because their time is over, `coming` the news entries to be listed at that
    time (expiry.schedule; empty: cancelled).
    `feed` holds the feed item of each page (None: none), no page if the site has no feeds.
    `told` are the pages whose change search engines are to be notified of.
    """

    sections: Mapping[str, int]
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
    names: dict[int, str] = field(default_factory=dict)
    feed: dict[str, FeedItem | None] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def section_of(self, loc: str) -> int | None:
        """The number of the section that lists `loc` after this batch, None if none does."""
        if loc in self.placed:
            return self.placed[loc]
        page = self.pages.get(loc)
        return page.place.section if page and page.place else None

    def relist(self, key: str, fragment: bytes) -> None:
        """List the known page `key` as `fragment`, in its section and with its stamp."""
        page = self.pages[key]
        assert page is not None
        self.placed.setdefault(key, self.section_of(key) or 0)
        self.pages[key] = page._replace(length=len(fragment), digest=fragments.digest(fragment))
        self.fragments[key] = fragment

    def number(self, section: str) -> int:
        """The number of `section`. Raises UnknownSectionError if it has none."""
        try:
            return self.sections[section]
        except KeyError:
            raise UnknownSectionError(section) from None

    def name(self, number: int) -> str | None:
        """The section of this number, None if there is none."""
        if len(self.names) != len(self.sections):
            self.names = {number: name for name, number in self.sections.items()}
        return self.names.get(number)


def subjects(event: Event) -> tuple[str | None, bytes]:
    """The loc and the owner (empty: none) whose records are needed to decide `event`."""
    if event.id is None:
        return event.loc, b""
    return event.loc, owner_of(event.source, event.kind, event.id, event.locale)


class NetChange(NamedTuple):
    """Net change of one page: from `before` (as stored, empty: none) to `after` (PageRecord.tail).

    `fragment` is set when the listed bytes change, `section` is the number of their section.
    `expired` is True if the page leaves because its time is over.
    """

    loc: str
    digest: bytes
    before: bytes
    after: bytes
    fragment: bytes | None
    section: int | None
    expired: bool = False


def net(known: BatchState, before: Mapping[str, bytes]) -> list[NetChange]:
    """The net changes of a batch: `known` against the stored records `before`."""
    ops = []
    for loc, page in known.pages.items():
        stored = before[loc]
        # Only the store assigns a place, and no decision changes it.
        if page is None or (after := page.tail()) == stored[PLACE_BYTES:]:
            continue
        fragment, section = known.fragments.get(loc), known.section_of(loc)
        if fragment is not None and PageRecord.lists(stored, page.digest, section):
            fragment = None  # changed and changed back within the batch
        over = loc in known.expired
        ops.append(NetChange(loc, digest_of(loc), stored, after, fragment, section, over))
    return ops
