"""Archive rules: a section takes the pages of another one by their age, or by what events say."""

from __future__ import annotations

from typing import NamedTuple

from shared.events.event import Event
from shared.sitemap import w3c_dates

FIELDS = ("changefreq", "priority", "kind")
"""Members of an event by which a page can be archived; `never` is the changefreq that the protocol
has for archived pages (PROTOCOL M8)."""

_DAY_MS = 86_400_000


class ArchiveRule(NamedTuple):
    """Rule by which a section takes pages of the section `of`.

    It takes those whose lastmod is `after_days` old (0: whatever their age), and those of whose
    `fields` an event states one of the values.
    """

    of: str
    after_days: int = 0
    fields: tuple[tuple[str, frozenset[str]], ...] = ()

    def takes(self, event: Event, now_ms: int) -> bool:
        """True if the page of `event` is archived at `now_ms` (since 1970)."""
        if any(getattr(event, name) in values for name, values in self.fields):
            return True
        return event.lastmod is not None and self.is_old(event.lastmod, now_ms)

    def is_old(self, lastmod: str, now_ms: int) -> bool:
        """True if a page with this canonical `lastmod` is archived for its age."""
        due = self.due_ms(lastmod)
        return due is not None and due <= now_ms

    def due_ms(self, lastmod: str) -> int | None:
        """The time (ms since 1970) from which such a page is archived; None: never for its age."""
        if not self.after_days:
            return None
        return w3c_dates.epoch_ms(lastmod) + self.after_days * _DAY_MS
