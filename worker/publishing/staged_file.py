"""Staging of the file of one shard, and the record of it."""

from __future__ import annotations

from shared.config.site import Site
from shared.sitemap import fragments, shards, w3c_dates
from shared.sitemap.shards import Shard
from shared.store.keys import PublishedFile
from shared.store.publishing import revisions
from shared.store.publishing.publish_batch import PublishedShard
from shared.tracing import traced
from worker.publishing.ownership import path_of
from worker.publishing.shard_merge import MergedShard, render
from worker.publishing.web_root import StagedFile, WebRoot


class FileStager:
    """Stages the shard files of one site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._kept = {name for name, section in site.sections.items() if section.keep_empty}

    @traced("stage")
    def stage(self, root: WebRoot, merged: MergedShard, *, again: bool) -> StagedFile | None:
        """Write the new file beside the current one; None if the shard has no file.

        With `again`, also None if the current file is equal. Raises ShardError if this one file
        cannot be written, PublishError if the web root refuses.
        """
        if not self.stands(merged):
            return None
        shard, file = merged.taken.shard, merged.taken.file
        path = self.path(shard)
        before = root.read_own(path) if again or self._site.form == "xml" else None
        content = render(merged, self._site, b"" if again else before or b"")
        if again and before == b"".join(content):
            return None
        since = file.lastmod + 1 if file else 0
        return root.stage(path, content, since=since)

    def stands(self, merged: MergedShard) -> bool:
        """Return True if the shard has a file: it lists a page, or is kept empty by its section."""
        section, number = merged.taken.shard
        return merged.urls > 0 or (number == 1 and section in self._kept)

    def done(self, root: WebRoot, merged: MergedShard, staged: StagedFile | None) -> PublishedShard:
        """Return the record of the shard for the time after its file is in place."""
        shard, state, before = merged.taken.shard, merged.taken.state, merged.taken.file
        page = state.ordinal // self._site.index_shards
        if not self.stands(merged):
            return _revised(PublishedShard(merged.taken, merged.edited, None, page, b""), merged)
        # A file that stays may be that of a publisher which died before the commit.
        lastmod = staged.mtime if staged else root.mtime(self.path(shard))
        lastmod = max(lastmod, before.lastmod if before else 0)
        if before and merged.held:
            file = before._replace(lastmod=lastmod)
        else:
            file = PublishedFile(
                state.generation, lastmod, merged.urls, merged.size(self._site), *merged.peak
            )
        url = self._site.base.url(shards.file_name(shard, self._site.form))
        line = fragments.index_line(url, w3c_dates.from_epoch_s(lastmod))
        done = PublishedShard(merged.taken, merged.edited, file, page, line, merged.held)
        return done if merged.held else _revised(done, merged)

    def path(self, shard: Shard) -> str:
        """Return the name of a shard's file on disk."""
        return path_of(shard, self._site.form)


def _revised(done: PublishedShard, merged: MergedShard) -> PublishedShard:
    lines = b"" if merged.lines is None else revisions.pack(merged.lines)
    return done._replace(changed=merged.changed, lines=lines)
