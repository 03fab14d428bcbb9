"""Ownership of a web root: sweep it, check its run marker, restore lost files.

The run marker beside the files names the state that wrote them, and its number of publishes: an
empty or older state must never overwrite what a newer one wrote (RELIABILITY F22). A publish pass
that finds the marker as it left it does without all this (WebRoot.is_of).
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping

from shared.config import filenames
from shared.config.filenames import MARKER
from shared.config.sites.site import Site
from shared.config.sites.targets import TargetSettings
from shared.errors import ForeignStateError, UnwritableError
from shared.sitemap import shards, w3c_dates
from shared.sitemap.shards import Shard
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.publish_work import PublishRun
from shared.telemetry.logs import logger
from worker.publishing.shard_file import ShardFiles, path_of
from worker.publishing.static import static_pages
from worker.publishing.targets.registry import open_own, open_target
from worker.publishing.targets.target import Target
from worker.publishing.targets.web_root import marker_of

MOST_NAMED = 3
_LINE = re.compile(rb"<loc>[^<]*/([^/<]+)</loc><lastmod>([^<]+)</lastmod>")

_log = logger("publisher")


def belongs(
    root: Target, state: PublishState, name: str, site: Site, run: PublishRun | None = None
) -> bool:
    """Return True if the run marker says that the files in `root` are those of `run`; by default
    of the state as it is.

    False without a marker, if no file there contradicts it, and after a failover. Raises
    ForeignStateError if the files are of another state or of a newer one; also if there is no
    marker but a sitemap, of any origin, that this state never published (RELIABILITY F22, F31).
    Only then are names and indexes read, never shard files. Raises StoreError, PublishError.
    """
    marker = read_marker(root)
    # Asked after the marker was read: a running publisher writes it after its commit.
    run = run or state.known_run()
    if marker is not None:
        if failed_over(marker, state, run):
            return False
        check_marker(root, marker, run, name)
        root.accept(marker)
        return True
    sections = {*site.limits, *state.sections()}
    found = [
        each
        for each in filenames.sitemaps(root.names(), sections)
        if (site.index or not filenames.is_index(each))
        and (look := root.look(each)) is not None
        and not look.directory
    ]
    if found and not run.publishes:
        raise _unknown(root, name, found)
    known = _known(state, sections)
    strange = [each for each in found if not filenames.is_index(each) and each not in known]
    if strange:
        raise _unknown(root, name, strange)
    if _newer(root, state, known, filter(filenames.is_index, found)):
        raise _foreign(f"{root.address} was written from a newer state than this Redis holds", name)
    return False


def read_marker(root: Target) -> PublishRun | None:
    """Return the run marker; None if it is missing, or was torn by a power cut.

    Raises PublishError if it cannot be read.
    """
    found = root.read(MARKER)
    # It is written in place: what was read in that moment may be half of one and half of another.
    while (again := root.read(MARKER)) != found:
        found = again
    try:
        ident, publishes, *history = json.loads(found or b"")
        return PublishRun(ident, int(publishes), *history)
    except (ValueError, TypeError):
        return None


def failed_over(marker: PublishRun, state: PublishState, run: PublishRun) -> bool:
    """Return True if `marker` is of the former master of `state`, whose `run` is: that may have
    written files whose commits were lost in a failover, with the identity if they were the first.
    Raises StoreError.
    """
    if not marker.history or (marker.ident != run.ident and run.publishes):
        return False
    return marker.history == state.histories()[1]


def check_marker(root: Target, marker: PublishRun, run: PublishRun, site: str) -> None:
    """Raise ForeignStateError unless `marker` is that of `run`, or of an earlier publish of it: of
    another state, or of a newer copy of this one. The remedy names `site`.
    """
    if marker.ident != run.ident or marker.publishes > run.publishes:
        raise _foreign(
            f"{root.address} was written from another state than this Redis holds, or from a newer "
            "one",
            site,
        )


def _foreign(reason: str, site: str) -> ForeignStateError:
    return ForeignStateError(
        reason,
        "restore the newer Redis data; or import the pages again, "
        f"then run: sitemapd rebuild --site {site} --adopt",
    )


def _unknown(root: Target, name: str, found: Collection[str]) -> ForeignStateError:
    named = ", ".join(sorted(found)[:MOST_NAMED]) + (", ..." if len(found) > MOST_NAMED else "")
    first = shards.index_name(0) if shards.index_name(0) in found else min(found)
    source = f"{root.address}/{first}"
    return ForeignStateError(
        f"{root.address} holds sitemaps that this Redis knows nothing of ({named})",
        f"import what they list: sitemapd import --site {name} --from sitemap:{source}; then have "
        f"them replaced: sitemapd publish --site {name} --adopt. If sitemapd wrote them, restore "
        "its Redis data instead",
    )


def _known(state: PublishState, sections: Collection[str]) -> dict[str, Shard]:
    """Return the files that shards of this state can have had, in any form, with the shard."""
    return {
        path_of(shard, form): shard for shard in state.shards(sections) for form in shards.FORMS
    }


def _newer(
    root: Target, state: PublishState, known: Mapping[str, Shard], indexes: Iterator[str]
) -> bool:
    """Return True if an index on disk dates a file later than this state does.

    Dirty shards do not count: a publisher that died may have placed their files before the commit.
    """
    files, dirty = state.files({shard.section for shard in known.values()}), set(state.dirty())
    for index in indexes:
        for name, lastmod in _LINE.findall(root.read_own(index) or b""):
            shard = known.get(name.decode(errors="replace"))
            if shard is None or shard in dirty:
                continue
            file = files.get(shard)
            if file is None or lastmod.decode(errors="replace") > w3c_dates.from_epoch_s(
                file.lastmod
            ):
                return True
    return False


class Ownership:
    """Opens the web root and checks that its files are of this state.

    `root` is the open web root, None before the first `open`. It is the target `settings` of
    several, whose lost files a follower restores; by default the only one.
    """

    def __init__(
        self, state: PublishState, name: str, site: Site, settings: TargetSettings | None = None
    ) -> None:
        self._state, self._name, self._site, self._settings = state, name, site, settings
        self._files = ShardFiles(site)
        self.root: Target | None = None
        self._readable = False

    def open(self, run: PublishRun, keep_lease: Callable[[], None]) -> tuple[Target, bool]:
        """Return the web root, swept when first opened; and True if its files were lost.

        Raises ForeignStateError, before any write, if the files are not of this state. Raises
        StoreError, PublishError.
        """
        root, lost = self._open(), False
        now = run._replace(history=self._state.histories()[0])
        if not belongs(root, self._state, self._name, self._site, run):
            lost = run.publishes > 0
            if lost and self._settings is None:
                self._restore(root, keep_lease)
            self._mark(root, now)
        elif not root.continues(now):
            self._mark(root, now)
        if not self._readable:
            static_pages.place(root, self._site)
            self._readable = True
        return root, lost

    def _mark(self, root: Target, run: PublishRun) -> None:
        """Write the run marker anew and durably: before the first file, or over another state's."""
        if not run.publishes:
            self._state.confirm(run)
        staged = root.stage(MARKER, [marker_of(run)])
        try:
            root.place(staged)
        except BaseException:
            root.discard([staged])
            raise
        root.sync()
        root.accept(run)

    def _open(self) -> Target:
        if self.root is not None and not self.root.stands():
            self.root.close()  # a deployment has replaced the directory
            self.root = None
        if self.root is None:
            root = (
                open_target(self._site, self._settings) if self._settings else open_own(self._site)
            )
            root.sweep()
            self.root, self._readable = root, False
        return self.root

    def _restore(self, root: Target, keep_lease: Callable[[], None]) -> None:
        """Restore every published shard file, before an index can name it again.

        A file as new as recorded, or newer, stays: a power cut can take the marker and leave files
        that were placed and not yet recorded, and a reader must not see these revert.
        """
        published = self._state.files(self._state.sections())
        _log.warning("files of the web root restored", site=self._name)
        for shard, file in published.items():
            path = self._files.path(shard)
            if root.mtime(path) >= file.lastmod:
                continue
            content = self._files.content(shard, self._state.content(shard))
            if root.read_own(path) != b"".join(content):
                with contextlib.suppress(UnwritableError):  # set aside by the next pass
                    root.place(root.stage(path, content, since=file.lastmod))
            keep_lease()
        # The next passes compare every file, each index with its lines, and robots.txt.
        self._state.mark_dirty(published)

    def adopt(self) -> None:
        """Take over a web root that another state, or another program, wrote.

        The next passes compare every file with this state. Raises StoreError, PublishError.
        """
        root = self._open()
        run = self._state.run(secrets.token_hex(8))
        self._mark(root, run._replace(history=self._state.histories()[0]))
        if self._settings is None:
            self._state.mark_dirty(self._state.files(self._state.sections()))
        self._state.quarantine.clear()
