"""Migration of published files to changed settings, and removal of the files of earlier settings.

The settings that decide names and bytes are recorded in the state. When they change, every shard
concerned is published again, at the usual number per pass; old names stay for `retire_hours`, for
crawlers that have read the old index.
"""

from __future__ import annotations

import gzip
import json
import re
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b

import redis

from shared.config import filenames
from shared.config.sites.site import Site
from shared.errors import PublishError
from shared.sitemap import shards
from shared.sitemap.fragments import index_start
from shared.sitemap.shards import Shard
from shared.store.publishing.file_shape import FileShapes
from shared.store.publishing.publish_state import PublishState
from shared.telemetry.logs import logger
from worker.publishing.shard_file import ShardFiles, path_of
from worker.publishing.targets.target import Target

AGAIN_S = 60.0
"""Seconds until the removal of a file is tried again."""

MOST_NAMED = 100

_OURS = re.compile(r"([a-z0-9-]{1,64}?)(?:-(\d+))?\.(?:xml|txt)(?:\.gz)?")

_OF_EVERY_FILE = ("base", "form", "pages", "index", "index_shards", "html")
_FORMERLY = {"html": "False"}  # of records that were written before there was the setting

_log = logger("publisher")


def shape_of(site: Site) -> dict[str, str]:
    """Return the settings of `site` that decide the names and bytes of its files."""
    rest = [
        site.robots, site.feed, site.feed_entries, site.feed_title, site.hub,
        sorted(name for name, section in site.sections.items() if section.keep_empty),
        *([site.outputs.model_dump(exclude={"gzip_index"})] if site.outputs.files else ()),
    ]  # fmt: skip
    return {
        "base": site.base.prefix,
        "form": site.form,
        "pages": str(site.viewer),
        "index": "gz" if site.outputs.gzip_index else str(site.index),
        "index_shards": str(site.index_shards),
        "html": str(site.outputs.html),
        "rest": blake2b(json.dumps(rest).encode(), digest_size=8).hexdigest(),
    }


class FileMigration:
    """Migrates the files of one site to its current settings.

    `renewed` is True once the files are known to be of these settings, or were marked to be written
    again. `hidden` are plain files that a web server would send instead of the encoded ones.
    """

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._state, self._shapes = PublishState(client, name), FileShapes(client, name)
        self._name, self._site = name, site
        self._shape = shape_of(site)
        self._files = ShardFiles(site)
        self.renewed, self.hidden = False, set[str]()

    def due(self) -> bool:
        """Return True if the files were written with other settings, or the settings are unknown.

        Raises StoreError.
        """
        self.renewed = self.renewed or self._shapes.read() == self._shape
        return not self.renewed

    def renew_once(self) -> bool:
        """Run `renew` if that is due; return True if files are written again. Raises StoreError."""
        dirty = self.renew() if self.due() else []
        self.hidden = {name for name, when in self._shapes.retired().items() if not when}
        return bool(dirty)

    def take_hidden(self, written: Iterable[Shard]) -> list[str]:
        """Return those of `hidden` that hide the files of `written`, once."""
        names = {shards.file_name(shard, self._site.form) for shard in written} & self.hidden
        self.hidden -= names
        return sorted(names)

    def renew(self) -> list[Shard]:
        """Mark the shards written with other settings for publishing; return them.

        The caller holds the lease. Repeating it after a crash has the same effect. Raises
        StoreError.
        """
        before = self._shapes.read()
        changed = [
            name
            for name in self._shape
            if before and before.get(name, _FORMERLY.get(name)) != self._shape[name]
        ]
        files = self._state.files(self._state.sections()) if changed else {}
        if files:
            self._retire(before)
            if {"index_shards", "index"} & {*changed}:
                self._state.repage(self._site.index_shards)
            if "base" in changed and "form" not in changed:
                self._state.write_lines(self.lines())
            of_all = {*changed} & {*_OF_EVERY_FILE}
            dirty = list(files) if of_all else [next(iter(files))]
            self._state.mark_dirty(dirty)
            _log.warning(
                "files rewritten after a change of settings", site=self._name, settings=changed,
                files=len(dirty),
            )  # fmt: skip
        else:
            dirty = []
        if "base" in changed:
            _log.warning(
                "base_url changed: pages of the old address stay listed until they are deleted",
                site=self._name, was=before.get("base", ""), now=self._shape["base"],
            )  # fmt: skip
        self._shapes.record(self._shape)
        self.renewed = True
        return dirty

    def lines(self) -> dict[int, dict[int, bytes]]:
        """Return the lines of every index file under the current settings. Raises StoreError."""
        sections, found = self._state.sections(), dict[int, dict[int, bytes]]()
        states = self._state.shards(sections)
        for shard, file in self._state.files(sections).items():
            ordinal = states[shard].ordinal
            line = self._files.line(shard, file.lastmod)
            found.setdefault(ordinal // self._site.index_shards, {})[ordinal] = line
        return found

    def _retire(self, before: dict[str, str]) -> None:
        now = {*self._names(self._shape)}
        old = {*self._names({**self._shape, **before})} - now
        # A web server would send the plain file instead of the encoded one.
        hides = {name for name in old if f"{name}.gz" in now and self._site.form == "encoded"}
        self._shapes.retire(hides, 0)
        self._shapes.retire(old - hides, time.time() + self._site.retire_hours * 3600)
        self._shapes.keep(now)

    def _names(self, shape: dict[str, str]) -> Iterator[str]:
        """Yield the names of shard files and indexes of the published shards under these
        settings.
        """
        sections = self._state.sections()
        states, form = self._state.shards(sections), shape["form"]
        for shard in self._state.files(sections):
            yield path_of(shard, form if form in shards.FORMS else self._site.form)
            if shape["index"] in {"True", "gz"} and shape["index_shards"].isdigit():
                page = states[shard].ordinal // int(shape["index_shards"])
                yield shards.index_name(page, packed=shape["index"] == "gz")

    def waiting(self) -> dict[str, float]:
        """Return the files to be removed, with the time of removal (s since 1970)."""
        return self._shapes.retired()

    def remove_due(self, root: Target) -> list[str]:
        """Remove the files that are due and that no index names; return them.

        Raises StoreError, PublishError.
        """
        now = time.time()
        due = [name for name, when in self._shapes.retired().items() if when <= now]
        if not due:
            return []
        named = {*self._named()}
        gone = [name for name in due if name not in named]
        self._shapes.keep(gone)
        removed = self.remove(root, gone)
        if removed:
            said = removed[:MOST_NAMED]
            _log.info("files of earlier settings removed", site=self._name, files=said)
        return removed

    def remove(self, root: Target, names: Iterable[str]) -> list[str]:
        """Remove files that no index names; return them. Refused ones are tried again.

        Raises StoreError, and PublishError if the web root cannot be synced.
        """
        removed = []
        for name in names:
            try:
                if root.remove(name):
                    removed.append(name)
            except PublishError as error:
                self._shapes.retire([name], time.time() + AGAIN_S)
                _log.error("file not removed", site=self._name, reason=str(error))
        if removed:
            root.sync()
        return removed

    def remove_stray(self, root: Target) -> list[str]:
        """Remove the files of sitemapd that the state does not have; return them. The caller holds
        the lease. Raises StoreError, PublishError.
        """
        site, sections = self._site, self.sections
        expected = {path_of(shard, site.form) for shard in self._state.files(sections)}
        if site.index:
            pages = self._state.pages(site.index_shards)
            expected |= {filenames.index_name(site, page) for page in pages}
        stray = self.stray(root, {*expected, *self.waiting()})
        removed = [name for name in stray if root.remove(name)]
        root.sync()
        return removed

    def stray(self, root: Target, expected: Collection[str]) -> list[str]:
        """Return the names of sitemapd in `root` that are not `expected`. Raises StoreError,
        PublishError.
        """
        sections = self.sections
        names = (name for name in root.names() if name not in expected)
        return sorted(name for name in names if self._is_ours(root, name, sections))

    @property
    def sections(self) -> list[str]:
        """All sections that ever existed: a section no longer configured may still list pages."""
        return sorted({*self._site.limits, *self._state.sections()})

    def _is_ours(self, root: Target, name: str, sections: Collection[str]) -> bool:
        found = _OURS.fullmatch(name)
        if found is None:
            return False
        if name in {shards.index_name(0), shards.index_name(0, packed=True)}:
            # It may predate sitemapd.
            content = root.read_own(name) or b""
            with suppress(OSError, EOFError, zlib.error):
                content = gzip.decompress(content) if name.endswith(".gz") else content
            return any(content.startswith(index_start(styled=styled)) for styled in (True, False))
        ours = {"sitemap", *sections}
        whole = f"{found[1]}-{found[2]}"  # posts-2025-11: the month, or the eleventh file
        return whole in ours or (found[1] in ours and found[2] is not None)

    def _named(self) -> Iterator[str]:
        """Yield the names on disk that published indexes can contain, and those of the indexes."""
        sections, form = self._state.sections(), self._site.form
        # A shard not yet written with the current settings still has its old name.
        dirty = {
            name
            for shard in self._state.dirty()
            for each in shards.FORMS
            for name in (shards.file_name(shard, each), path_of(shard, each))
        }
        yield from dirty
        for shard in self._state.files(sections):
            yield path_of(shard, form)
        for page in self._state.pages(self._site.index_shards):
            if self._site.index:
                yield filenames.index_name(self._site, page)
