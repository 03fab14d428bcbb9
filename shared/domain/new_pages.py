"""Decisions on plain pages of which nothing is stored: those of `decide`, many times as fast.

Of such a page nothing older, no group, no feed and no claim needs to be looked at, so its record
and its fragment follow from what it states. A property test holds this to `decide`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shared.domain.page_record import Arrival, Claim, listed_tail, owner_of, stamp
from shared.events.event import NATIVE
from shared.events.plain_page import PlainPage
from shared.sitemap import fragments, w3c_dates

NewPage = tuple[bytes, bytes, bytes, bytes]
"""Fragment, rest of the record (PageRecord.tail), owner and claim as stored (both empty: none)."""

ADDED = "added"


def decide_new(
    pages: Iterable[PlainPage], version: int, arrival: Arrival, *, hints: bool
) -> Iterator[NewPage | None]:
    """Yield the decision on each page, of which nothing is stored: it is ADDED; None for one that
    only `decide` can decide.

    A page without a version has `version` (ms since 1970). The sections of these pages have no
    rules (Routing.unruled), and the site has no feeds.
    """
    past = set[str]()
    stamps: dict[int | None, int] = {}
    for loc, lastmod, changefreq, priority, ident, _, stated in pages:
        if lastmod is not None and lastmod not in past:
            if w3c_dates.in_future(lastmod, arrival.ms):
                yield None
                continue
            past.add(lastmod)
        when = stamps.get(stated)
        if when is None:
            stamps = {stated: (when := stamp(version if stated is None else stated, *arrival))}
        fragment = fragments.render_plain(
            loc, lastmod, changefreq if hints else None, priority if hints else None
        )
        owner = claim = b""
        if ident is not None:
            owner, claim = owner_of(NATIVE, "", ident, ""), Claim(when, loc).pack()
        yield fragment, listed_tail(fragment, when, owner), owner, claim
