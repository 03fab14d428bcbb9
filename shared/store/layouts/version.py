"""Number of the layout of a site's state, in `counters` as `form`, and the refusal of others.

Each process compares it when it first reads the sections of a site, and again when their numbering
changes, as it does with the layout; begin_publish.lua compares it at each publish.
"""

from __future__ import annotations

from typing import NamedTuple

from shared.errors import LayoutError
from shared.store.keys import Keys
from shared.store.round_trips import Reading

CURRENT = 3
"""1 had section numbers of 8 bits and shard numbers of 24; 2 had the keys of a section beside the
other keys of the site (`{site}:<section>:shards`), and other owners of claims
(page_record.owner_of).
"""
OLDEST = 2
"""The oldest layout that can be migrated."""

FORM, BACK, OWNERS = "form", "back", "owners"
"""Fields of `counters`: the layout, `2>3` while it changes; set if the site is to stay in an older
one; set if its claims are stored under the owners of layout 2."""


class Layout(NamedTuple):
    """Layout `stored`, None for a site without state; `to` is another one while it is moved there.
    `stays` if an administrator moved it back.
    """

    stored: int | None
    to: int | None = None
    stays: bool = False

    @classmethod
    def read(cls, form: bytes | None, back: bytes | None, *, known: bool) -> Layout:
        """Return the layout by the fields of `counters`; a state without one, of which sections are
        `known`, has layout 1.
        """
        if form is None:
            return cls(1 if known else None)
        numbers = [int(each) if each.isdigit() else 0 for each in form.split(b">")]
        to = numbers[1] if len(numbers) == 2 else None
        return cls(numbers[0], to, back is not None)

    @property
    def current(self) -> bool:
        """True if this version works on the state."""
        return self.stored in {None, CURRENT} and self.to is None

    @property
    def older(self) -> bool:
        """True if the state can be migrated to the current layout."""
        ends = {self.stored, self.to} - {None}
        return not self.current and all(end in range(OLDEST, CURRENT + 1) for end in ends)

    def __str__(self) -> str:
        return f"{self.stored}" if self.to is None else f"{self.stored}, being moved to {self.to}"

    def refusal(self, site: str) -> LayoutError:
        """Return the error for a state that is not current, with the remedy."""
        said = f"the state of {site} has layout {self}"
        migrate = f"sitemapd migrate --site {site}"
        if self.older and self.stays:
            return LayoutError(
                f"{said}, to which it was moved back: run the version of that layout, or {migrate}"
            )
        if self.older:
            return LayoutError(f"{said}: a worker moves it to {CURRENT}, or run: {migrate}")
        if self.stored is not None and max(self.stored, self.to or 0) > CURRENT:
            return LayoutError(
                f"{said}, this version knows {OLDEST} to {CURRENT}: install the version that "
                "wrote it; to go back, run its `sitemapd migrate --rollback` first"
            )
        return LayoutError(
            f"{said}, this version reads {OLDEST} to {CURRENT}: run the version that wrote it "
            "until `sitemapd status` counts no waiting events, keep the published files, empty "
            "Redis, and `sitemapd import` them"
        )


def layout_reading(keys: Keys) -> Reading[Layout]:
    """Return the Reading of the layout of the site with these `keys`."""
    (form, back), known = yield (("HMGET", keys.counters, FORM, BACK), ("EXISTS", keys.sections))
    return Layout.read(form, back, known=bool(known))
