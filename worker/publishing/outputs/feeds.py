"""The two feed files of a site: write them in the pass that publishes a change, repair or remove
them.

A feed lists only recent changes (PROTOCOL F11): no index names it, and the sitemap never waits for
it.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.config.sites.site import Site
from shared.errors import PublishError, UnwritableError
from shared.sitemap import feed_writer
from shared.sitemap.feed_writer import FeedChannel
from shared.store.publishing.publish_state import PublishState
from shared.telemetry.logs import logger
from worker.publishing.targets.target import StagedFile, Target

NAMES = feed_writer.NAMES

_log = logger("publisher")


def contents(state: PublishState, site: Site) -> dict[str, bytes]:
    """Return the expected content of the feed files by name; empty while there is nothing to list.

    Raises StoreError.
    """
    if not site.feed:
        return {}
    listed = feed_writer.newest(state.feed(), site.feed_entries)
    urls = {name: site.base.url(name) for name in NAMES}
    channel = FeedChannel(site.feed_title, site.base.url(""), urls, site.hub)
    return {name: feed_writer.render(name, channel, listed) for name in NAMES if listed}


def fault(root: Target, state: PublishState, site: Site, name: str) -> str | None:
    """Return `missing`, `differs` or `unwanted` for the feed `name`; None if it is right.

    Also None where it is left alone on purpose, and while patches wait: those are in the state but
    not in the file, and the publish pass that takes them compares the file itself. Raises
    StoreError.
    """
    if site.feed and state.dirty(1):
        return None
    content = contents(state, site).get(name)
    try:
        found = root.read(name)
    except PublishError:
        return None
    if content is None:
        return None if found is None or not feed_writer.is_ours(name, found) else "unwanted"
    if found is None:
        return "missing"
    return None if found == content else "differs"


class FeedFiles:
    """Writer of the feeds of one site."""

    def __init__(self, state: PublishState, name: str, site: Site) -> None:
        self._state, self._name, self._site = state, name, site
        self._wanted, self.tidied = False, False

    def stage(self, root: Target, staged: list[StagedFile]) -> None:
        """Stage into `staged` the feed files whose content has changed. Raises StoreError,
        PublishError.
        """
        found = contents(self._state, self._site)
        self._wanted = bool(found)
        for name, content in found.items():
            try:
                same = root.read(name) == content
            except PublishError as error:
                # A link or a directory, for example: only an administrator knows its purpose.
                _log.error("feed not replaced", site=self._name, reason=str(error))
                continue
            try:
                if not same:
                    staged.append(root.stage(name, [content]))
            except UnwritableError as error:
                _log.error("feed not replaced", site=self._name, reason=str(error))

    def place(self, root: Target, feeds: Iterable[StagedFile]) -> list[str]:
        """Replace the changed feeds; return their names. A refused one does not delay the sitemap.

        Raises PublishError unless only that file is refused.
        """
        written = []
        for feed in feeds:
            try:
                root.place(feed)
                written.append(feed.name)
            except UnwritableError as error:
                _log.error("feed not replaced", site=self._name, reason=str(error))
        return written

    def write(self, root: Target) -> list[str]:
        """Write and tidy the feeds apart from a publish pass; return the names written. Raises
        StoreError, PublishError.
        """
        staged = list[StagedFile]()
        try:
            self.stage(root, staged)
            written = self.place(root, staged)
        finally:
            root.discard(staged)
        self.tidy(root, again=False)
        return written

    def tidy(self, root: Target, *, again: bool) -> list[str]:
        """Remove feed files that list nothing or are switched off, and the stored feed of the
        latter.

        Returns the removed names. Runs once, and with `again`, when files are compared. Files that
        sitemapd did not write stay. Raises StoreError, PublishError.
        """
        if self._wanted or (self.tidied and not again and not self._site.feed):
            return []
        self.tidied = True
        if not self._site.recent_entries:
            self._state.forget_feed()
        removed = [
            name
            for name in NAMES
            if feed_writer.is_ours(name, root.read_own(name) or b"") and root.remove(name)
        ]
        if removed:
            root.sync()
        return removed
