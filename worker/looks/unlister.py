"""Events of our own that unlist a broken page, and list it again as it was."""

from __future__ import annotations

import redis

from shared.domain.batch_state import NEWS
from shared.domain.looks.unlisted_pages import is_unlisted
from shared.domain.page_record import PageRecord
from shared.events.event import RELIST, UNLIST, Event
from shared.sitemap import fragments
from shared.sitemap.feed_writer import FeedItem
from shared.store.inbox.inbox import Inbox
from shared.store.looks.look_store import LookStore, UnlistedPage
from shared.store.pages.changes import unpacked
from shared.store.pages.lookup import PageLookup


class Unlister:
    """Unlists pages of one site, and lists them again."""

    def __init__(
        self, client: redis.Redis, name: str, store: LookStore, lookup: PageLookup
    ) -> None:
        self._inbox, self._store, self._lookup = Inbox(client, name), store, lookup

    def is_ours(self, loc: str, page: PageRecord) -> bool:
        """Return True if `page` was unlisted by us, and nobody decided on it since."""
        kept = self._store.unlisted(loc)
        return kept is not None and is_unlisted(page, kept.stamp)

    def unlist(self, loc: str, page: PageRecord, why: str) -> bool:
        """Unlist a listed page; False if its entry is being published right now."""
        twins = unpacked(self._lookup.records([NEWS + loc])[0])
        listed = {loc: page, **{key: twin for key, twin in twins.items() if twin and twin.live}}
        current = self._lookup.current(listed)
        if current.keys() != listed.keys():
            return False
        item = self._lookup.feed([loc])[loc]
        group, lang = "", tuple[str, ...]()
        if page.group:
            _, members = self._lookup.groups([page.group])[page.group]
            if loc in members:
                group, lang = page.group.hex(), members[loc].codes
        # Remembered first: of an event that nobody accepted, nothing is left to be undone.
        kept = UnlistedPage(
            page.stamp, current[loc].decode(), group, lang, current.get(NEWS + loc, b"").decode(),
            item.pack() if item else b"",
        )  # fmt: skip
        self._store.set_unlisted(loc, kept)
        self._inbox.accept([Event(UNLIST, loc, stamp=page.stamp, why=why)])
        return True

    def relist(self, loc: str, why: str) -> None:
        """List a page again that is_ours."""
        kept = self._store.unlisted(loc)
        if kept is not None:
            news = fragments.parse(kept.news.encode()).news if kept.news else None
            item = FeedItem.unpack(kept.item)
            event = Event(
                RELIST, loc, stamp=kept.stamp, why=why, entry=kept.entry, news=news,
                group=kept.group or None, lang=kept.lang, version=item.updated_ms if item else None,
                title=(item and item.title) or None,
                description=(item and item.description) or None,
            )  # fmt: skip
            self._inbox.accept([event])
            self._store.set_unlisted(loc, None)
