"""Order of the looks at one site's pages: what was published since, the newest first; then a round
over all pages, in parts spread over all files, each page once before any comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import redis

from shared.config.sites.site import Site
from shared.domain.page_record import digest_of
from shared.errors import ShardError
from shared.sitemap.shards import Shard
from shared.store.looks.look_store import DAY_MS, LookState, LookStore
from shared.store.pages.page_scan import PageScan
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.revisions import Revisions

MOST_REVISIONS = 50
"""Published files of which the changes are read in one turn."""
PORTION = 500
"""Pages of a file that are chosen at once."""
MOST_PORTIONS = 8
"""Portions of one turn: of files whose pages were all looked at meanwhile, none is due."""
HOUR_MS = 3_600_000


class LookOrder:
    """Chooses what `store` has due, for one site."""

    def __init__(self, client: redis.Redis, name: str, site: Site, store: LookStore) -> None:
        assert site.pages is not None
        self._settings, self._store, self._news = site.pages, store, site.routing.news
        self._revisions, self._scan = Revisions(client, name), PageScan(client, name)
        self._state = PublishState(client, name)

    def fill(self, state: LookState, pages: int, now_ms: int) -> LookState:
        """Add what was published, and as much of the round as may be due; return the state after
        it. `pages` are listed. Raises StoreError.
        """
        state = self._published(state)
        if self._store.due():
            return state
        state = self._begun(state, pages, now_ms)
        for _ in range(MOST_PORTIONS):
            if not state.cursor or self._store.due():
                break
            state = self._portion(state)
        return state

    def _published(self, state: LookState) -> LookState:
        """Add the pages of the latest publishes: new ones, then those that changed."""
        if not state.after:
            newest = next(iter(self._revisions.latest()), None)
            return self._changed(state, after=newest.at if newest else "0-0")
        due, last = dict[str, float](), state.after
        for revision in islice(self._revisions.after(state.after), MOST_REVISIONS):
            last = revision.at
            if revision.shard.section in self._news:
                continue
            for line in revision.lines or ():
                if line.after is not None:
                    due[line.loc] = revision.at_ms - (DAY_MS if line.before else 0)
        self._store.add_due(due)
        return state if last == state.after else self._changed(state, after=last)

    def _begun(self, state: LookState, pages: int, now_ms: int) -> LookState:
        """Begin the next round, if the last one has ended and began long enough ago."""
        if state.cursor or now_ms - state.began < self._settings.again_hours * HOUR_MS or not pages:
            return state
        parts = max(1, -(-pages // self._settings.daily))
        first = next(self._shards(), None)
        if first is None:
            return state
        return self._changed(
            state, began=now_ms, round=state.round + 1, part=(state.part + 1) % parts, parts=parts,
            cursor=f"{first}/0", looked=0, failed=0, urls=pages, looked_before=state.looked,
            failed_before=state.failed, urls_before=state.urls,
        )  # fmt: skip

    def _portion(self, state: LookState) -> LookState:
        """Add the next pages of the round."""
        name, _, rest = state.cursor.partition("/")
        number, _, offset = rest.partition("/")
        here, start = Shard(name, int(number)), int(offset)
        chosen = list[str]()
        with suppress(ShardError):  # damaged: a check reports it
            chosen = [
                loc for loc in self._scan.locs(here)
                if int.from_bytes(digest_of(loc)[4:], "big") % state.parts == state.part
            ]  # fmt: skip
        some = chosen[start : start + PORTION]
        found = zip(some, self._store.records(some) if some else [], strict=True)
        fresh = [
            (loc, seen) for loc, seen in found
            if seen is None or not seen.is_of(state.round, state.began)
        ]  # fmt: skip
        # Those that were never looked at come first.
        fresh.sort(key=lambda each: each[1].at_s if each[1] else 0)
        self._store.add_due({loc: -1.0 - at for at, (loc, _) in enumerate(fresh)})
        if start + PORTION < len(chosen):
            return self._changed(state, cursor=f"{here}/{start + PORTION}")
        following = next((shard for shard in self._shards() if shard > here), None)
        return self._changed(state, cursor=f"{following}/0" if following else "")

    def _shards(self) -> Iterator[Shard]:
        names = [name for name in self._state.sections() if name not in self._news]
        return iter(sorted(self._scan.shards(names)))

    def _changed(self, state: LookState, **fields: str | int) -> LookState:
        self._store.change(**fields)
        return state._replace(**fields)  # type: ignore[arg-type]
