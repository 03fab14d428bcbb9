"""Own target of a publisher, of a site with several: brought up to date before it leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import redis

from shared.config.sites.site import Site
from shared.config.sites.targets import TargetSettings
from shared.sitemap import shards
from shared.store.publishing.publish_work import PublishedShard, PublishRun
from shared.store.targets.target_state import INDEX
from worker.publishing.followers.follower import Follower
from worker.publishing.publish_pass import PublishPass
from worker.publishing.targets.registry import own_settings


class OwnTarget:
    """The target that the publisher of one process writes itself. Raises PublishError if this host
    has none.
    """

    def __init__(self, client: redis.Redis, name: str, site: Site, consumer: str) -> None:
        settings: TargetSettings = own_settings(site)
        self._follower = Follower(client, name, site, settings, consumer)
        self.ownership = self._follower.ownership
        self._outputs = site.outputs.files
        others = (each.ident for each in site.every_target if each.ident != settings.ident)
        self._name, self._others = settings.ident, " ".join(others)

    @contextmanager
    def leading(self, run: PublishRun, keep_lease: Callable[[], None]) -> Iterator[bool]:
        """Hold the lease of the target for the block; False if it lacks files of `run`: then its
        follower must write these first. Raises StoreError, PublishError.
        """
        ready = self._follower.lead(run, keep_lease)
        try:
            yield ready
        finally:
            if ready:
                self._follower.target.release()

    def forget(self) -> None:
        """Have all files of the target compared. Raises StoreError."""
        self._follower.target.forget()

    def keep(self) -> None:
        """Extend the lease of the target. Raises StoreError."""
        self._follower.target.doubt()

    def doubt(self, now: PublishPass) -> bool:
        """Note the files that are about to be written; False if the lease of the target was lost.
        Raises StoreError.
        """
        return self._follower.target.doubt(_names(now))

    def versions(self, now: PublishPass, done: Sequence[PublishedShard]) -> tuple[str, str, str]:
        """Return the files that this pass changed, the target that has them, and the others."""
        gone = (str(each.taken.shard) for each in done if each.file is None)
        pages = (f"{INDEX}{each.page}" for each in done if each.file is None)
        # What other outputs say of a page may change without its shard file.
        also = (str(each.taken.shard) for each in done if self._outputs)
        return " ".join({*_names(now), *gone, *pages, *also}), self._name, self._others


def _names(now: PublishPass) -> list[str]:
    pages = {
        shards.index_name(page, packed=packed): page
        for page in now.lines for packed in (False, True)
    }  # fmt: skip
    staged: Iterable[str] = (file.name for file in now.indexes)
    return [*map(str, now.shards), *(f"{INDEX}{pages[name]}" for name in staged)]
