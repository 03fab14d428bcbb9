"""Change list of a site: changelist.xml, and the two files by which clients find it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import redis

from shared.config.sites.site import Site
from shared.domain.page_record import PageRecord
from shared.domain.routing import family_of
from shared.sitemap import change_list
from shared.sitemap.change_list import LoggedChange, ResourceSyncFiles
from shared.sitemap.shards import Shard
from shared.store.client import Scripts
from shared.store.keys import keys_of
from shared.store.pages.changes import read_records
from shared.store.publishing.change_log import ChangeLog, Changes
from worker.publishing.outputs.output import Output
from worker.publishing.shard_file import MergedShard


class ChangeListFiles(Output):
    """The change list of one site."""

    names = change_list.NAMES

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._most = site.outputs.change_list_entries
        self._log, self._scripts = ChangeLog(client, name, self._most), Scripts(client)
        self._prefix, self._site = keys_of(name).prefix, site
        self._appended: Changes | None = None
        self._news = frozenset(site.routing.news)
        of = site.base.url
        self._urls = ResourceSyncFiles(*map(of, (*change_list.NAMES, "")))

    def record(self, published: Sequence[MergedShard]) -> None:
        """Append the changed pages of the published files to the log."""
        # News list a page again, and leave after two days while the page stays.
        pages = [
            each
            for each in published
            if each.changed
            and family_of(each.taken.shard.section, self._site.limits) not in self._news
        ]
        unknown = any(each.lines is None for each in pages)
        new = {} if unknown else change_list.changes(
            line for each in pages for line in each.lines or ()
        )  # fmt: skip
        unknown |= len(new) > self._most
        if pages or self._log.read() is None:
            self._appended = self._log.append(() if unknown else self._really(new), unknown=unknown)

    def _really(self, new: Mapping[str, LoggedChange]) -> list[LoggedChange]:
        """Return `new` without pages that only left a file whose new one waits for another pass."""
        gone = [loc for loc, change in new.items() if change.kind == "deleted"]
        stored = read_records(self._scripts, self._prefix, gone, ())[0] if gone else {}
        moved = {loc for loc, record in stored.items() if record and PageRecord.was_live(record)}
        return [change for loc, change in new.items() if loc not in moved]

    def contents(self, shards: Collection[Shard] | None = None) -> Iterable[tuple[str, bytes]]:  # noqa: ARG002
        """Return the three files; none before the first publish."""
        found, self._appended = self._appended or self._log.read(), None
        if found is None:
            return ()
        urls = self._urls
        return (
            (change_list.CHANGES, change_list.change_list(urls, *found)),
            (change_list.CAPABILITIES, change_list.capability_list(urls)),
            (change_list.SOURCE, change_list.source_description(urls)),
        )

    def is_ours(self, content: bytes) -> bool:
        """Return True if `content` is one of the three files, of any site."""
        return change_list.is_ours(content)

    def adopted(self) -> None:
        """Begin a new log: what this state published is not what clients have followed."""
        self._log.forget()

    def forget(self) -> None:
        """Delete the log."""
        self._log.forget()
