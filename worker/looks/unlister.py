"""Events of our own that unlist a broken page, and list it again as it was."""

from __future__ import annotations

import redis

from shared.domain.looks.unlisted_pages import is_unlisted
from shared.domain.page_record import PageRecord
from shared.events.event import RELIST, UNLIST, Event
from shared.store.inbox.inbox import Inbox
from shared.store.looks.look_store import LookStore, UnlistedPage
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
        fragment = self._lookup.current({loc: page}).get(loc)
        if fragment is None:
            return False
        group, lang = "", tuple[str, ...]()
        if page.group:
            _, members = self._lookup.groups([page.group])[page.group]
            if loc in members:
                group, lang = page.group.hex(), members[loc].codes
        # Remembered first: of an event that nobody accepted, nothing is left to be undone.
        self._store.set_unlisted(loc, UnlistedPage(page.stamp, fragment.decode(), group, lang))
        self._inbox.accept([Event(UNLIST, loc, stamp=page.stamp, why=why)])
        return True

    def relist(self, loc: str, why: str) -> None:
        """List a page again that is_ours."""
        kept = self._store.unlisted(loc)
        if kept is not None:
            event = Event(
                RELIST, loc, stamp=kept.stamp, why=why, entry=kept.entry,
                group=kept.group or None, lang=kept.lang,
            )  # fmt: skip
            self._inbox.accept([event])
            self._store.set_unlisted(loc, None)
