"""Publish times of files and pages, as far back as stored (for shared/crawls/delays.py)."""

from __future__ import annotations

from collections.abc import Iterator

import redis

from shared.config.sites.site import Site
from shared.store.operations.event_log import EventLog
from shared.store.publishing.revisions import Revisions


class PublishTimes:
    """Reader of publishes from the event log and of changed lines from the revisions.

    A publish that changed more lines of a file than revisions keep is known by its file alone.
    """

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._history, self._revisions = EventLog(client, name), Revisions(client, name)
        self._base, self._form = site.base, site.form

    def files(self) -> Iterator[tuple[str, int]]:
        """Yield the URL of each file that was written, and when (ms since 1970), oldest first."""
        for at_ms, said in self._history.publishes():
            for name in said["written"]:
                listed = name.removesuffix(".gz") if self._form == "encoded" else name
                yield self._base.url(listed), at_ms

    def changes(self) -> Iterator[tuple[str, int]]:
        """Yield the loc of each page added or changed, and when its file was written (ms)."""
        for revision in self._revisions.since():
            for line in revision.lines or ():
                if line.after is not None and line.loc.startswith(self._base.prefix):
                    yield line.loc, revision.at_ms
