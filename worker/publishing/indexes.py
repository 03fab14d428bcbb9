"""Index files of a site and its lines in robots.txt, rewritten only when they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from shared.config.site import Site
from shared.errors import PublishError, RobotsError, UnwritableError
from shared.logs import logger
from shared.sitemap import fragments, robots, shards
from shared.sitemap.shards import ShardState
from shared.store.publishing.publish_batch import PublishedShard
from shared.store.publishing.publish_state import PublishState
from worker.publishing.web_root import StagedFile, WebRoot

_log = logger("publisher")


class IndexChange(NamedTuple):
    """Lines of one index file by ordinal, before and after."""

    page: int
    before: Mapping[int, bytes]
    after: Mapping[int, bytes]

    @property
    def name(self) -> str:
        """Name of the index file."""
        return shards.index_name(self.page)


def named(
    state: PublishState, site: Site, lines: Mapping[int, Mapping[int, bytes]] = MappingProxyType({})
) -> list[str]:
    """Return the URLs that robots.txt names: of the index files, or of all shards without an index.

    `lines` are those of index files about to change. Raises StoreError.
    """
    pages = {*state.pages(site.index_shards), *(page for page, after in lines.items() if after)}
    listed = sorted(page for page in pages if lines.get(page, True))
    if site.index:
        return [site.base.url(shards.index_name(page)) for page in listed]
    found = []
    for page in listed:
        after = lines[page] if page in lines else state.lines(page)
        found += [fragments.listed_url(after[ordinal]) for ordinal in sorted(after)]
    return found


def robots_fault(root: WebRoot, site: Site, urls: Sequence[str]) -> str | None:
    """Return `missing` or `differs` for the sitemapd lines in robots.txt; None if they are right.

    Also None where the file is left alone on purpose; a change of lines then logs an alarm.
    """
    if not site.keeps_robots:
        return None
    try:
        content = root.read("robots.txt")
        if content is None:
            return "missing" if urls and site.robots == "create" else None
        return None if robots.edit(content, urls) == content else "differs"
    except (RobotsError, PublishError):
        return None


class Indexes:
    """Writer of the index files of one site."""

    def __init__(self, state: PublishState, name: str, site: Site) -> None:
        self._state, self._name, self._site = state, name, site
        self._robots_checked = False

    def pages(self, states: Iterable[ShardState]) -> list[int]:
        """Return the index files that list the shards of these `states`."""
        return sorted({state.ordinal // self._site.index_shards for state in states})

    def changes(
        self, done: Sequence[PublishedShard], lines: Mapping[int, Mapping[int, bytes]]
    ) -> list[IndexChange]:
        """Return the changes of the index files, with current `lines`, that list the `done`
        shards.
        """
        changes = []
        for page, before in lines.items():
            after = dict(before)
            for each in done:
                if each.page == page and each.file is None:
                    after.pop(each.state.ordinal, None)
                elif each.page == page:
                    after[each.state.ordinal] = each.line
            changes.append(IndexChange(page, before, after))
        return changes

    def stage(
        self, root: WebRoot, changes: Sequence[IndexChange], *, again: bool
    ) -> Iterator[StagedFile]:
        """Stage the index files whose lines changed; with `again`, those whose file differs.

        Raises PublishError.
        """
        for change in changes if self._site.index else ():
            if change.after and (again or change.after != change.before):
                lines = (change.after[n] for n in sorted(change.after))
                content = shards.render_index(lines, styled=self._site.pages)
                if not again or root.read_own(change.name) != content:
                    yield root.stage(change.name, [content])

    def follow(self, root: WebRoot, changes: Sequence[IndexChange], *, again: bool) -> list[str]:
        """Update robots.txt after the index files, remove those without lines; return the names
        written.

        An index without a line is invalid (PROTOCOL F12) and none may list another (N1), so
        sitemap.xml is removed as well once each of its first shards is empty, though others are
        left: robots.txt names those. By default that takes the end of the first 10,000,000 pages.
        Raises StoreError, PublishError.
        """
        written = []
        gone = [change for change in changes if not change.after]
        if self._site.index:
            moved = gone or any(change.after and not change.before for change in changes)
        else:
            moved = any(change.after.keys() != change.before.keys() for change in changes)
        if moved or again or not self._robots_checked:
            written = self._write_robots(root, changes)
            self._robots_checked = True
        for change in gone:
            try:
                root.remove(change.name)
            except PublishError as error:
                _log.error("file not removed", site=self._name, reason=str(error))
        return written

    def _write_robots(self, root: WebRoot, changes: Sequence[IndexChange]) -> list[str]:
        if not self._site.keeps_robots:
            return []
        urls = named(self._state, self._site, {each.page: each.after for each in changes})
        try:
            before = root.read("robots.txt")
            if before is None and (self._site.robots == "edit" or not urls):
                return []
            after = robots.edit(before, urls)
        except (RobotsError, PublishError) as error:
            # A link, for example (RELIABILITY T18). The sitemap itself must not wait for it.
            _log.error("robots.txt not edited", site=self._name, reason=str(error))
            return []
        if after == (before or b""):
            return []
        try:
            root.place(root.stage("robots.txt", [after]))
        except UnwritableError as error:
            _log.error("robots.txt not edited", site=self._name, reason=str(error))
            return []
        return ["robots.txt"]
