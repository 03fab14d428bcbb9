"""The file of one shard: written beside the old one, and what is recorded of it."""

from __future__ import annotations

from shared import fragments, shards, w3c
from shared.shards import Shard
from shared.sites import Site
from shared.store import revisions
from shared.store.contract import PublishedFile
from shared.store.work import Done
from shared.tracing import traced
from worker.files import Staged, WebRoot
from worker.merging import Merged, render
from worker.ownership import path_of


class Stager:
    """Stages the shard files of one site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._kept = {name for name, section in site.sections.items() if section.keep_empty}

    @traced("stage")
    def stage(self, root: WebRoot, merged: Merged, *, again: bool) -> Staged | None:
        """Write the file beside its predecessor; None where there is to be none, and if `again`
        where the one that lies there is equal. ShardError if this one file cannot be written.
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

    def stands(self, merged: Merged) -> bool:
        """Whether the shard has a file: if it lists anything, or is to be kept without."""
        section, number = merged.taken.shard
        return merged.urls > 0 or (number == 1 and section in self._kept)

    def done(self, root: WebRoot, merged: Merged, staged: Staged | None) -> Done:
        """What is recorded once the file has its place."""
        shard, state, before = merged.taken.shard, merged.taken.state, merged.taken.file
        page = state.ordinal // self._site.index_shards
        if not self.stands(merged):
            return _revised(Done(merged.taken, merged.edited, None, page, b""), merged)
        # A file that stays may be that of a publisher which died before it could say so.
        lastmod = staged.mtime if staged else root.mtime(self.path(shard))
        lastmod = max(lastmod, before.lastmod if before else 0)
        if before and merged.held:
            file = before._replace(lastmod=lastmod)
        else:
            file = PublishedFile(
                state.generation, lastmod, merged.urls, merged.size(self._site), *merged.peak
            )
        url = self._site.base.url(shards.file_name(shard, self._site.form))
        line = fragments.index_line(url, w3c.from_epoch_s(lastmod))
        done = Done(merged.taken, merged.edited, file, page, line, merged.held)
        return done if merged.held else _revised(done, merged)

    def path(self, shard: Shard) -> str:
        """The name of a shard's file on disk."""
        return path_of(shard, self._site.form)


def _revised(done: Done, merged: Merged) -> Done:
    lines = b"" if merged.lines is None else revisions.pack(merged.lines)
    return done._replace(changed=merged.changed, lines=lines)
