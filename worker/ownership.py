"""The web root of one site, as its own state left it: swept, marked, and put back where lost."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from shared import shards
from shared.shards import Shard, ShardState
from shared.sites import Site
from shared.store.publishing import Publishing
from shared.store.work import Run
from shared.telemetry import logger
from worker import marker, readable
from worker.files import WebRoot
from worker.merging import render, unpatched

_log = logger("publisher")


def path_of(shard: Shard, form: str) -> str:
    """The name of a shard's file on disk."""
    return shards.on_disk(shards.file_name(shard, form), form)


class Ownership:
    """Opens the web root and sees that what lies there is of this state."""

    def __init__(self, state: Publishing, name: str, site: Site) -> None:
        self._state, self._name, self._site = state, name, site
        self._root: WebRoot | None = None

    def open(self) -> WebRoot:
        """The web root; at first swept, and made readable."""
        if self._root is not None and not self._root.stands():
            self._root.close()  # a deployment has put another directory in its place
            self._root = None
        if self._root is None:
            root = WebRoot(self._site.web_root)
            root.sweep()
            readable.place(root, self._site)
            self._root = root
        return self._root

    def check(self, root: WebRoot, run: Run, keep_lease: Callable[[], None]) -> bool:
        """Whether files were lost and are put back; PublishError if they are not of this state."""
        if marker.belongs(root, run, self._name):
            return False
        if run.publishes:
            self._restore(root, keep_lease)
        marker.write(root, run)
        return run.publishes > 0

    def _restore(self, root: WebRoot, keep_lease: Callable[[], None]) -> None:
        """Put back every shard file that was published, before an index can name it again.

        Not over one that is as new as was recorded, or newer: a power cut can take the marker and
        leave files that were placed and not recorded yet, and no reader may see these go back.
        """
        published = self._state.files(self._state.sections())
        _log.warning("web root not ours or emptied: files put back", site=self._name)
        for shard, file in published.items():
            path = path_of(shard, self._site.form)
            if root.mtime(path) >= file.lastmod:
                continue
            (taken,), _ = self._state.load([shard], [ShardState(0, 0, 0, 0)])
            content = render(unpatched(taken), self._site)
            if root.read_own(path) != b"".join(content):
                root.place(root.stage(path, content, since=file.lastmod))
            keep_lease()
        # The passes to come compare every file, each index with its lines, and robots.txt.
        self._state.soil(published)

    def adopt(self) -> None:
        """Let this state take over a web root that another one wrote."""
        marker.write(self.open(), self._state.run(secrets.token_hex(8)))
