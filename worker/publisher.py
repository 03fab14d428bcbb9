"""Write what changed, and only that: shards, then index, feeds, robots.txt; then commit.

A reader sees old files or new ones, and an index whose files all exist: files that appear are
written before they are named, files that vanish are named no more before they go. A crash at any
point leaves the patches where they were, and the next pass writes the same bytes.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import redis

from shared import fragments, shards, w3c
from shared.errors import ShardError
from shared.shards import Shard
from shared.sites import Site
from shared.store import revisions, tally
from shared.store.contract import LEASE_MS, PublishedFile
from shared.store.publishing import Publishing
from shared.store.redis import Errand
from shared.store.work import Begun, Done, Run, Taken
from shared.telemetry import logger
from shared.tracing import traced
from worker import marker, readable
from worker.feeds import Feeds
from worker.files import Staged, WebRoot
from worker.guarding import Guard
from worker.indexes import Indexes
from worker.merging import Merged, check, merge, render
from worker.ownership import Ownership, path_of

PASS_SHARDS = 16
PASS_BYTES = 64 * 1024 * 1024
"""What one pass takes at most, so that it ends well within its lease."""
SET_ASIDE_S = 30.0
"""How long a shard that cannot be written is in nobody's way: a pass takes the longest waiting."""

_log = logger("publisher")


class Published(NamedTuple):
    """What one pass did: shards brought up to date, files written and files removed.

    Besides the shards that the shrink guard held, and why others cannot be written as they are
    stored.
    """

    shards: list[Shard]
    written: list[str]
    removed: list[str]
    held: Sequence[Shard] = ()
    damaged: Mapping[Shard, str] = {}


class Publisher:
    """Publishes one site. One at a time does so, by a lease; any process may be that one."""

    def __init__(self, client: redis.Redis, name: str, site: Site, consumer: str) -> None:
        self.state = Publishing(client, name)
        self._name, self._site, self._tally = name, site, tally.of(client)
        self._indexes = Indexes(self.state, name, site)
        self._feeds = Feeds(self.state, name, site)
        self._me = f"{consumer}:"
        self._token = self._me + secrets.token_hex(8)
        self._ownership = Ownership(self.state, name, site)
        self._guard = Guard(name, site)
        self._kept = {name for name, section in site.sections.items() if section.keep_empty}
        self._damaged: dict[Shard, tuple[float, str]] = {}
        self._holder: tuple[str, float] = ("", 0.0)
        self._held_at = self._began = 0.0
        self._engines = tuple(site.notify.engines)

    def errand(self, again: Sequence[Shard] = ()) -> Errand:
        """What `publish` begins with: may be sent along with what comes before it."""
        self._held_at = self._began = time.monotonic()
        since = self._held_at - SET_ASIDE_S
        aside = [shard for shard, (at, _) in self._damaged.items() if at > since]
        return self.state.errand(self._token, secrets.token_hex(8), again, PASS_SHARDS, aside)

    @property
    def damaged(self) -> dict[Shard, str]:
        """The shards that could not be written as they are stored when last tried, and why."""
        return {shard: reason for shard, (_, reason) in self._damaged.items()}

    def publish(
        self, again: Sequence[Shard] = (), errand: Errand | None = None
    ) -> Published | None:
        """One pass over the shards that wait longest: what it did; None if nothing could be.

        `again` are shards to compare with their files and write where these differ, whether
        patches wait or not. Raises StoreError, or PublishError: the old files are in place then
        and the work is still queued.
        """
        begun = self.state.begun(errand or self.errand(again))
        if isinstance(begun, str):
            self._held_by(begun)
        if not isinstance(begun, Begun):
            return None
        try:
            return self._pass(begun, again=bool(again))
        except BaseException:
            self.state.release(self._token, begun.shards)
            raise

    def _held_by(self, holder: str) -> None:
        """Take the lease from a publisher that died: our own former life, or one that is stuck.

        Judged by our own monotonic clock: expiry in Redis follows the wall clock (F12).
        """
        if self._holder[0] != holder:
            self._holder = (holder, time.monotonic())
        if holder.startswith(self._me) or time.monotonic() - self._holder[1] > LEASE_MS / 1000:
            self._tally.add(self._name, "lease_taken")
            _log.warning("lease taken over", site=self._name, holder=holder)
            self.state.release(holder)

    def _pass(self, begun: Begun, *, again: bool) -> Published | None:
        root = self._ownership.open()
        lost = self._ownership.check(root, begun.run, self._keep_lease)
        within = begun.within(PASS_BYTES)
        states = begun.states[:within]
        taken, lines = self.state.load(begun.shards[:within], states, self._indexes.pages(states))
        merged = list(self._merge(taken))
        self._guard.tell(merged)
        # Dirty without patches: a publisher that had lost its lease may have put older bytes there,
        # or somebody has changed a file by hand.
        again = again or lost or not all(each.edited for each in merged)
        staged: dict[Shard, Staged] = {}
        indexes: list[Staged] = []
        try:
            sound = list(self._stage_all(root, merged, staged, again=again))
            done = [self._done(root, each, staged.get(each.taken.shard)) for each in sound]
            changes = self._indexes.changes(done, lines)
            if again:
                readable.place(root, self._site)
            named = self._indexes.stage(root, changes, again=again)
            for index in chain(named, self._feeds.stage(root)):
                # One by one: the next may fail, and all that were written are discarded then.
                indexes.append(index)  # noqa: PERF402
            if not self._place(root, staged.values(), indexes):
                return None
        finally:
            root.discard((*staged.values(), *indexes))
        written = [file.name for file in (*staged.values(), *indexes)]
        written += self._indexes.follow(root, changes, again=again)
        removed = self._remove(root, done, sync=bool(written))
        removed += self._feeds.tidy(root, again=again)
        damaged = {
            shard: self._damaged[shard][1]
            for shard in begun.shards[:within]
            if shard in self._damaged
        }
        return self._commit(begun.run, root, done, written, removed)._replace(damaged=damaged)

    def _merge(self, taken: Sequence[Taken]) -> Iterator[Merged]:
        for each in taken:
            try:
                yield self._guard.judge(merge(each))
            except ShardError as error:
                self._hold_back(each.shard, error)

    def _stage_all(
        self, root: WebRoot, merged: Sequence[Merged], staged: dict[Shard, Staged], *, again: bool
    ) -> Iterator[Merged]:
        """Stage the files of `merged`; those that may be published."""
        for each in merged:
            shard = each.taken.shard
            try:
                self._stage(root, each, staged, again=again)
                check(each)  # while the disk is busy with the file
            except ShardError as error:
                self._hold_back(shard, error)
                root.discard([staged.pop(shard)] if shard in staged else [])
            else:
                self._damaged.pop(shard, None)
                yield each
            self._keep_lease()

    def _hold_back(self, shard: Shard, error: ShardError) -> None:
        self._damaged[shard] = (time.monotonic(), str(error))
        self._tally.add(self._name, "held_back")
        _log.error("shard held back", site=self._name, shard=str(shard), reason=str(error))

    def _remove(self, root: WebRoot, done: Sequence[Done], *, sync: bool) -> list[str]:
        """Remove the files of shards that are empty now: no index on the disk may name them."""
        vanished = [self._path(each.shard) for each in done if each.file is None]
        if sync or vanished:
            root.sync()
        removed = [name for name in vanished if root.remove(name)]
        if removed:
            root.sync()
        return removed

    @traced("rename")
    def _place(
        self, root: WebRoot, staged: Collection[Staged], indexes: Collection[Staged]
    ) -> bool:
        """Let the files take their names; False, and nothing has changed, without the lease."""
        for file in (*staged, *indexes):
            root.flush(file)  # so that nothing slow follows the look at the lease
            self._keep_lease()
        if not self.state.holds(self._token):
            _log.warning("lease lost before publishing", site=self._name)
            return False
        for file in staged:
            root.place(file)
        # An index may reach the disk before the new bytes of a file that it named already, never
        # before the file itself.
        if not all(file.before for file in staged):
            root.sync()
        for file in indexes:
            root.place(file)
        return True

    @traced("stage")
    def _stage(
        self, root: WebRoot, merged: Merged, staged: dict[Shard, Staged], *, again: bool
    ) -> None:
        if not self._stands(merged):
            return
        shard, file = merged.taken.shard, merged.taken.file
        path = self._path(shard)
        before = root.read_own(path) if again or self._site.form == "xml" else None
        content = render(merged, self._site, b"" if again else before or b"")
        if not again or before != b"".join(content):
            since = file.lastmod + 1 if file else 0
            staged[shard] = root.stage(path, content, since=since)

    def _stands(self, merged: Merged) -> bool:
        """Whether the shard has a file: if it lists anything, or is to be kept without."""
        section, number = merged.taken.shard
        return merged.urls > 0 or (number == 1 and section in self._kept)

    def _keep_lease(self) -> None:
        """Writing may take long on a slow disk."""
        if time.monotonic() - self._held_at > LEASE_MS / 4000:
            self._held_at = time.monotonic()
            self.state.hold(self._token)

    def _done(self, root: WebRoot, merged: Merged, staged: Staged | None) -> Done:
        shard, state, before = merged.taken.shard, merged.taken.state, merged.taken.file
        page = state.ordinal // self._site.index_shards
        if not self._stands(merged):
            return self._revised(Done(merged.taken, merged.edited, None, page, b""), merged)
        # A file that stays may be that of a publisher which died before it could say so.
        lastmod = staged.mtime if staged else root.mtime(self._path(shard))
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
        return done if merged.held else self._revised(done, merged)

    def _revised(self, done: Done, merged: Merged) -> Done:
        lines = b"" if merged.lines is None else revisions.pack(merged.lines)
        return done._replace(changed=merged.changed, lines=lines)

    def _commit(
        self, run: Run, root: WebRoot, done: Sequence[Done], written: list[str], removed: list[str]
    ) -> Published:
        held = [each.shard for each in done if each.held]
        published = Published(
            [each.shard for each in done if not each.held], written, removed, held
        )
        note = {
            "shards": [*map(str, published.shards)], "written": written, "removed": removed,
            "held": [*map(str, held)],
        }  # fmt: skip
        took_ms = int((time.monotonic() - self._began) * 1000)
        publishes = self.state.commit(self._token, done, note, self._engines, took_ms)
        if not publishes:
            self._tally.add(self._name, "lease_lost")
            _log.warning("lease lost while publishing: published again later", site=self._name)
            return published._replace(shards=[], held=[])
        if written or removed:
            marker.write(root, Run(run.ident, publishes))
            _log.info("published", site=self._name, **note)
        return published

    def adopt(self) -> None:
        """Let this state take over a web root that another one wrote."""
        self._ownership.adopt()

    def _path(self, shard: Shard) -> str:
        return path_of(shard, self._site.form)
