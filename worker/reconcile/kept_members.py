"""Members of listed pages that a repair keeps, since the source has no place for them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from shared.config.sites.site import Site
from shared.domain.batch_state import NEWS
from shared.domain.deferral import AT, Deferral
from shared.domain.page_record import PageRecord
from shared.events.event import Event, SchemaError
from shared.sitemap import fragments
from shared.store.pages.changes import unpacked
from shared.store.pages.lookup import PageLookup
from worker.sources.records import STATED

_ENTRY = STATED - {"news"}


class KeptMembers:
    """Kept members of the `listed` pages of one site, read at once."""

    def __init__(self, lookup: PageLookup, site: Site, listed: Mapping[str, PageRecord]) -> None:
        """Read it. Raises StoreError."""
        twins = lookup.records([NEWS + loc for loc in listed])[0]
        both = {**listed, **{key: page for key, page in unpacked(twins).items() if page}}
        self._current, self._lookup = lookup.current(both), lookup
        self._expires, self._titled = self._read_expires(listed), self._read_titles(site, listed)

    def of(self, event: Event, silent: frozenset[str]) -> dict[str, Any]:
        """Return the members to add to `event`: the listed values of the `silent` fields, which
        the source cannot express; `expires`, title and description, which only the sender of the
        page takes away.
        """
        loc, members = event.loc or "", dict[str, Any]()
        if loc in self._current:  # else it is being published right now
            entry = fragments.parse(self._current[loc])
            members |= {name: getattr(entry, name) for name in silent & _ENTRY}
        if "news" in silent and NEWS + loc in self._current:
            members["news"] = fragments.parse(self._current[NEWS + loc]).news
        if event.expires is None and loc in self._expires:
            members["expires"] = self._expires[loc]
        if event.title is None:
            members |= self._titled.get(loc, {})
        return members

    def _read_expires(self, listed: Mapping[str, PageRecord]) -> dict[str, str]:
        found = {}
        for key, stored in self._lookup.coming(AT + loc for loc in listed).items():
            with contextlib.suppress(SchemaError):  # said by the check of the state
                deferral, page = Deferral.unpack(stored), listed[key.removeprefix(AT)]
                if deferral.stamp == page.stamp and deferral.event.expires is not None:
                    found[key.removeprefix(AT)] = deferral.event.expires
        return found

    def _read_titles(
        self, site: Site, listed: Mapping[str, PageRecord]
    ) -> dict[str, dict[str, str]]:
        titles = self._lookup.titles(listed) if site.outputs.html else {}
        found = {loc: {"title": title} for loc, title in titles.items() if title}
        items = self._lookup.feed(listed) if site.recent_entries else {}
        for loc, item in items.items():
            if item is not None and item.title:
                found[loc] = {"title": item.title}
                if item.description:
                    found[loc]["description"] = item.description
        return found
