"""Examination of the state of one site: pages, claims and groups that name them, and counts."""

from __future__ import annotations

from collections.abc import Iterator

import redis

from shared.config.sites.site import Site
from shared.domain.routing import family_of
from shared.sitemap.shards import Shard
from shared.store.pages.summaries import Summaries
from worker.checks.consistency.flaws import Flaw
from worker.checks.consistency.listed_lines import ListedLines
from worker.checks.consistency.relations import Relations
from worker.checks.consistency.totals import Totals
from worker.checks.progress import Step


class Consistency:
    """Compares the parts of one site's state (RELIABILITY N14). It changes nothing.

    Memory does not grow with the site, and events may be applied meanwhile. `mixed` are the shards
    that list news, as of the last examination.
    """

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self.snapshots = Summaries(client, name)
        self._site = site
        self.mixed: set[Shard] = set()

    def flaws(self, step: Step = lambda _: None) -> Iterator[Flaw]:
        """Yield all flaws. Raises StoreError, and CheckError where no temporary file can be
        written.
        """
        with ListedLines(self.snapshots, self._site.form) as listed:
            yield from listed.flaws(self.shards(), step)
            self.mixed = listed.mixed
            related = Relations(self.snapshots, listed.owners, listed.groups)
            yield from related.flaws(step)
            yield from self.totals().flaws(listed.mixed)

    def shards(self) -> list[Shard]:
        """Return all shards that are counted or were published."""
        sections = sorted(self.snapshots.sections().values())
        found = self.snapshots.overview(sections)
        return sorted({*found.states, *found.files})

    def totals(self) -> Totals:
        """Return the checks of the site's totals."""
        limits = self._site.limits
        reusing = {
            name
            for name in self.snapshots.sections().values()
            if (family := family_of(name, limits)) in limits and limits[family].reuse
        }
        return Totals(self.snapshots, self._site, reusing)
