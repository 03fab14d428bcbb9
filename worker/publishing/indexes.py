"""Index files of a site and its lines in robots.txt, rewritten only when they change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from shared.config import filenames
from shared.config.sites.site import Site
from shared.errors import PublishError, RobotsError, UnwritableError
from shared.sitemap import fragments, robots, shards
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.publish_work import PublishedShard
from shared.telemetry.logs import logger
from worker.publishing.targets.target import StagedFile, Target

_log = logger("publisher")


class IndexChange(NamedTuple):
    """New lines of one index file by ordinal; none if it goes."""

    page: int
    lines: Mapping[int, bytes]


class UnwritableIndexError(UnwritableError):
    """Index file `page` cannot be written, while others can."""

    def __init__(self, page: int, reason: str) -> None:
        super().__init__(reason)
        self.page = page


def named(
    state: PublishState, site: Site, lines: Mapping[int, Mapping[int, bytes]] = MappingProxyType({})
) -> list[str]:
    """Return the URLs that robots.txt names: of the index files, or of all shards without an index.

    `lines` are those of index files about to change. Raises StoreError.
    """
    pages = {*state.pages(site.index_shards), *(page for page, after in lines.items() if after)}
    listed = sorted(page for page in pages if lines.get(page, True))
    if site.index:
        return [site.base.url(filenames.index_name(site, page)) for page in listed]
    found = []
    for page in listed:
        after = lines[page] if page in lines else state.lines(page)
        found += [fragments.listed_url(after[ordinal]) for ordinal in sorted(after)]
    return found


def index_content(site: Site, lines: Mapping[int, bytes]) -> bytes:
    """Return the bytes of an index file with these `lines`, by the ordinals of their shards."""
    listed = (lines[ordinal] for ordinal in sorted(lines))
    content = fragments.render_index(listed, styled=site.viewer)
    return shards.packed_index(content) if site.outputs.gzip_index else content


def robots_fault(root: Target, site: Site, urls: Sequence[str]) -> str | None:
    """Return `missing` or `differs` for the sitemapd lines in robots.txt, which name `urls` and
    `outputs.robots_also`; None if they are right.

    Also None where the file is left alone on purpose; a change of lines then logs an alarm.
    """
    if not site.keeps_robots:
        return None
    try:
        before, after = _robots(root, site, urls)
    except (RobotsError, PublishError):
        return None
    if after == (before or b""):
        return None
    return "missing" if before is None else "differs"


def _robots(root: Target, site: Site, urls: Sequence[str]) -> tuple[bytes | None, bytes]:
    """Return robots.txt as it is (None: there is none) and as it is to be (empty: none either),
    with the lines of `urls` and `outputs.robots_also`. Raises RobotsError, PublishError.
    """
    before = root.read("robots.txt")
    every = [*urls, *site.outputs.robots_also]
    if before is None and (site.robots == "edit" or not every):
        return None, b""
    return before, robots.edit(before, every)


class Indexes:
    """Writer of the index files of one site."""

    def __init__(self, state: PublishState, name: str, site: Site) -> None:
        self._state, self._name, self._site = state, name, site
        self._written = site.index
        self.robots_checked = False

    def stage(
        self,
        root: Target,
        done: Sequence[PublishedShard],
        lines: Mapping[int, Mapping[int, bytes]],
        staged: list[StagedFile],
        *,
        again: bool,
    ) -> list[IndexChange]:
        """Stage into `staged` the index files, with current `lines`, that list the `done` shards.

        Only those whose lines changed; with `again`, those whose file differs. Returns the changes
        that `follow` must follow: another list of files for robots.txt to name. Raises
        PublishError, UnwritableIndexError if only one cannot be written.
        """
        changes = []
        for page, before in lines.items():
            after, differs = dict(before), False
            for each in done:
                if each.page != page:
                    continue
                ordinal, line = each.taken.state.ordinal, each.line if each.file else None
                differs |= before.get(ordinal) != line
                after.pop(ordinal, None)
                if line is not None:
                    after[ordinal] = line
            if not (after and before) or not (self._written or after.keys() == before.keys()):
                changes.append(IndexChange(page, after))
            if self._written and after and (again or differs):
                self._stage(root, page, after, staged, again=again)
        return changes

    def _stage(
        self,
        root: Target,
        page: int,
        lines: Mapping[int, bytes],
        staged: list[StagedFile],
        *,
        again: bool,
    ) -> None:
        name = shards.index_name(page, packed=self._site.outputs.gzip_index)
        content = index_content(self._site, lines)
        try:
            if not again or root.read_own(name) != content:
                staged.append(root.stage(name, [content]))
        except UnwritableError as error:
            raise UnwritableIndexError(page, str(error)) from error

    def follow(self, root: Target, changes: Sequence[IndexChange]) -> list[str]:
        """Update robots.txt after the index files, remove those without lines; return the names
        written.

        An index without a line is invalid (PROTOCOL F12) and none may list another (N1), so
        sitemap.xml is removed as well once each of its first shards is empty, though others are
        left: robots.txt names those. By default that takes the end of the first 10,000,000 pages.
        Raises StoreError, PublishError.
        """
        written = self._write_robots(root, changes)
        self.robots_checked = True
        for page, lines in changes:
            try:
                if not lines:
                    root.remove(filenames.index_name(self._site, page))
            except PublishError as error:
                _log.error("file not removed", site=self._name, reason=str(error))
        return written

    def _write_robots(self, root: Target, changes: Sequence[IndexChange]) -> list[str]:
        if not self._site.keeps_robots:
            return []
        urls = named(self._state, self._site, dict(changes))
        try:
            before, after = _robots(root, self._site, urls)
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
