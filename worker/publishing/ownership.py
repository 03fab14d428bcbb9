"""Ownership of a web root: sweep it, check and write its run marker, restore lost files."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping

from shared.config import filenames
from shared.config.site import Site
from shared.errors import ForeignStateError, UnwritableError
from shared.logs import logger
from shared.sitemap import shards, w3c_dates
from shared.sitemap.shards import Shard, ShardState
from shared.store.publishing.publish_batch import PublishRun
from shared.store.publishing.publish_state import PublishState
from worker.publishing import run_marker, static_pages
from worker.publishing.shard_merge import render, unpatched
from worker.publishing.web_root import WebRoot

MOST_NAMED = 3
_LINE = re.compile(rb"<loc>[^<]*/([^/<]+)</loc><lastmod>([^<]+)</lastmod>")

_log = logger("publisher")


def path_of(shard: Shard, form: str) -> str:
    """Return the name of a shard's file on disk."""
    return shards.on_disk(shards.file_name(shard, form), form)


def belongs(root: WebRoot, state: PublishState, name: str, site: Site, run: PublishRun) -> bool:
    """Return True if the run marker says that the files in `root` are those of `run`.

    False without a marker, if no file there contradicts it. Raises ForeignStateError if the files
    are of another state or of a newer one; also if there is no marker but a sitemap, of any origin,
    that this state never published (RELIABILITY F22, F31). Only then are names and indexes read,
    never shard files. Raises StoreError, PublishError.
    """
    if run_marker.belongs(root, run, name):
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
        raise run_marker.foreign(
            f"{root.path} was written from a newer state than this Redis holds", name
        )
    return False


def _unknown(root: WebRoot, name: str, found: Collection[str]) -> ForeignStateError:
    named = ", ".join(sorted(found)[:MOST_NAMED]) + (", ..." if len(found) > MOST_NAMED else "")
    source = root.path / (shards.index_name(0) if shards.index_name(0) in found else min(found))
    return ForeignStateError(
        f"{root.path} holds sitemaps that this Redis knows nothing of ({named})",
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
    root: WebRoot, state: PublishState, known: Mapping[str, Shard], indexes: Iterator[str]
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
    """Opens the web root and checks that its files are of this state."""

    def __init__(self, state: PublishState, name: str, site: Site) -> None:
        self._state, self._name, self._site = state, name, site
        self._root: WebRoot | None = None
        self._readable = False

    def open(self) -> WebRoot:
        """Return the web root, swept when first opened. Raises PublishError."""
        if self._root is not None and not self._root.stands():
            self._root.close()  # a deployment has replaced the directory
            self._root = None
        if self._root is None:
            root = WebRoot(self._site.web_root)
            root.sweep()
            self._root, self._readable = root, False
        return self._root

    def check(self, root: WebRoot, run: PublishRun, keep_lease: Callable[[], None]) -> bool:
        """Restore lost files; return True if there were any.

        Raises ForeignStateError, before any write, if the files are not of this state. Raises
        StoreError, PublishError.
        """
        lost = False
        if not belongs(root, self._state, self._name, self._site, run):
            lost = run.publishes > 0
            if lost:
                self._restore(root, keep_lease)
            run_marker.write(root, run, durable=True)
        if not self._readable:
            static_pages.place(root, self._site)
            self._readable = True
        return lost

    def _restore(self, root: WebRoot, keep_lease: Callable[[], None]) -> None:
        """Restore every published shard file, before an index can name it again.

        A file as new as recorded, or newer, stays: a power cut can take the marker and leave files
        that were placed and not yet recorded, and a reader must not see these revert.
        """
        published = self._state.files(self._state.sections())
        _log.warning("files of the web root restored", site=self._name)
        for shard, file in published.items():
            path = path_of(shard, self._site.form)
            if root.mtime(path) >= file.lastmod:
                continue
            (taken,), _ = self._state.load([shard], [ShardState(0, 0, 0, 0)])
            content = render(unpatched(taken), self._site)
            if root.read_own(path) != b"".join(content):
                with contextlib.suppress(UnwritableError):  # set aside by the next pass
                    root.place(root.stage(path, content, since=file.lastmod))
            keep_lease()
        # The next passes compare every file, each index with its lines, and robots.txt.
        self._state.soil(published)

    def adopt(self) -> None:
        """Take over a web root that another state, or another program, wrote.

        The next passes compare every file with this state. Raises StoreError, PublishError.
        """
        root = self.open()
        run_marker.write(root, self._state.run(secrets.token_hex(8)), durable=True)
        self._state.soil(self._state.files(self._state.sections()))
        self._state.quarantine.clear()
