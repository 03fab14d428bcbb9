"""Write the changed files, and only those: shards, index, feeds, robots.txt; then commit.

A reader sees old files or new ones, and an index whose files all exist: new files are written
before an index names them, and files are removed after no index names them. A crash at any point
leaves the patches in place, and the next publish pass writes the same bytes.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import redis

from shared.config.site import Site
from shared.errors import PublishError, ShardError, UnwritableError
from shared.logs import logger
from shared.sitemap.shards import Shard
from shared.store.client import PipelinedScript
from shared.store.counting import counter_buffer
from shared.store.keys import LEASE_MS
from shared.store.publishing.publish_batch import (
    PublishBatch,
    PublishedShard,
    PublishRun,
    ShardWork,
)
from shared.store.publishing.publish_state import PublishState
from shared.tracing import traced
from worker.publishing import run_marker, static_pages
from worker.publishing.feeds import FeedFiles
from worker.publishing.file_migration import FileMigration
from worker.publishing.indexes import IndexChange, Indexes
from worker.publishing.ownership import Ownership
from worker.publishing.quarantine import DamagedShards
from worker.publishing.shard_merge import MergedShard, check, merge
from worker.publishing.shrink_check import ShrinkCheck
from worker.publishing.staged_file import FileStager
from worker.publishing.web_root import StagedFile, WebRoot

PASS_SHARDS = 16
PASS_BYTES = 64 * 1024 * 1024
"""Maximum size of one publish pass in bytes, so that it ends well within its lease."""

_log = logger("publisher")


class PublishResult(NamedTuple):
    """Outcome of one publish pass: shards brought up to date, files written and removed.

    `held` are the shards of a shrink hold, `damaged` those not written, with the reason.
    """

    shards: list[Shard]
    written: list[str]
    removed: list[str]
    held: Sequence[Shard] = ()
    damaged: Mapping[Shard, str] = {}


class Publisher:
    """Publisher of one site. A lease admits one publisher at a time, in any process."""

    def __init__(self, client: redis.Redis, name: str, site: Site, consumer: str) -> None:
        self.state = PublishState(client, name)
        self._name, self._site, self._tally = name, site, counter_buffer.of(client)
        self._indexes = Indexes(self.state, name, site)
        self._feeds = FeedFiles(self.state, name, site)
        self._me = f"{consumer}:"
        self._token = self._me + secrets.token_hex(8)
        self._ownership = Ownership(self.state, name, site)
        self._guard = ShrinkCheck(name, site)
        self._stager, self._reshaper = FileStager(site), FileMigration(client, name, site)
        self._aside = DamagedShards(self.state.quarantine, name, self._tally)
        self._holder: tuple[str, float] = ("", 0.0)
        self._held_at = self._began = 0.0
        self._engines = tuple(site.notify.engines)

    def errand(self, again: Sequence[Shard] = ()) -> PipelinedScript:
        """Return the pipelined script that begins a publish pass."""
        self._held_at = self._began = time.monotonic()
        aside = self._aside.skipped()
        return self.state.errand(self._token, secrets.token_hex(8), again, PASS_SHARDS, aside)

    @property
    def damaged(self) -> dict[Shard, str]:
        """Shards that could not be written at the last attempt, with the reason."""
        return self._aside.reasons

    def publish(
        self, again: Sequence[Shard] = (), errand: PipelinedScript | None = None
    ) -> PublishResult | None:
        """Run one publish pass over the shards that wait longest; None if none was possible.

        `again` are shards to compare with their files and write where these differ, with or without
        patches. Raises StoreError, or PublishError: then the old files are in place and the work
        stays queued.
        """
        begun = self.state.begun(errand or self.errand(again))
        if isinstance(begun, str):
            self._held_by(begun)
        if not isinstance(begun, PublishBatch):
            return None
        try:
            return self._pass(begun, again=bool(again))
        except BaseException as error:
            if isinstance(error, PublishError):
                self._aside.stop(error)
            self.state.release(self._token, begun.shards)
            raise

    def _held_by(self, holder: str) -> None:
        """Take over the lease of a dead publisher: this consumer before a restart, or a stuck one.
        Measured on the local monotonic clock: expiry in Redis follows the wall clock (F12).
        """
        if self._holder[0] != holder:
            self._holder = (holder, time.monotonic())
        if holder.startswith(self._me) or time.monotonic() - self._holder[1] > LEASE_MS / 1000:
            self._tally.add(self._name, "lease_taken")
            _log.warning("lease taken over", site=self._name, holder=holder)
            self.state.release(holder)

    def _pass(self, begun: PublishBatch, *, again: bool) -> PublishResult | None:
        root = self._ownership.open()
        lost = self._ownership.check(root, begun.run, self._keep_lease)
        again |= self._reshaper.renew_once()
        within = begun.within(PASS_BYTES)
        states = begun.states[:within]
        damaged = dict(begun.damaged)
        pages = self._indexes.pages(states)
        taken, lines = self.state.load(begun.shards[:within], states, pages, damaged)
        for shard, error in damaged.items():
            self._aside.add(shard, error)
        merged = list(self._merge(taken))
        self._guard.tell(merged)
        # Dirty without patches: an older publisher may have written after it lost its lease, or a
        # file was changed by hand.
        again = again or lost or not all(each.edited for each in merged)
        staged: dict[Shard, StagedFile] = {}
        indexes: list[StagedFile] = []
        feeds: list[StagedFile] = []
        try:
            sound = list(self._stage_all(root, merged, staged, again=again))
            if again:
                static_pages.place(root, self._site)
            for feed in self._feeds.stage(root):
                # One by one: the next may fail, and all written ones are then discarded.
                feeds.append(feed)  # noqa: PERF402
            placed = self._place_all(root, sound, staged, indexes, feeds, lines, again=again)
            if placed is None:
                return None
            done, changes = placed
            fed = self._feeds.place(root, feeds)
        finally:
            root.discard((*staged.values(), *indexes, *feeds))
        written = [file.name for file in (*staged.values(), *indexes)] + fed
        written += self._indexes.follow(root, changes, again=again)
        removed = self._remove(root, done, sync=bool(written))
        removed += self._feeds.tidy(root, again=again)
        reasons = self._aside.reasons
        at_work = (*begun.shards[:within], *begun.damaged)
        why = {shard: reasons[shard] for shard in at_work if shard in reasons}
        return self._commit(begun.run, root, done, written, removed)._replace(damaged=why)

    def _merge(self, taken: Sequence[ShardWork]) -> Iterator[MergedShard]:
        for each in taken:
            try:
                yield self._guard.judge(merge(each))
            except ShardError as error:
                self._aside.add(each.shard, error)

    def _stage_all(
        self,
        root: WebRoot,
        merged: Sequence[MergedShard],
        staged: dict[Shard, StagedFile],
        *,
        again: bool,
    ) -> Iterator[MergedShard]:
        """Stage the files of `merged`; yield those that may be published."""
        for each in merged:
            shard = each.taken.shard
            try:
                file = self._stager.stage(root, each, again=again)
                if file is not None:
                    staged[shard] = file
                check(each)  # while the disk is busy with the file
            except ShardError as error:
                self._aside.add(shard, error)
                root.discard([staged.pop(shard)] if shard in staged else [])
            else:
                self._aside.drop(shard)
                yield each
            self._keep_lease()

    def _remove(self, root: WebRoot, done: Sequence[PublishedShard], *, sync: bool) -> list[str]:
        """Remove the files of empty shards: no index on disk names them any more."""
        vanished = self._reshaper.shadows(each.shard for each in done if each.file)
        vanished += [self._stager.path(each.shard) for each in done if each.file is None]
        if sync or vanished:
            root.sync()
        return self._reshaper.remove(root, vanished)

    def _place_all(
        self, root: WebRoot, sound: Sequence[MergedShard], staged: dict[Shard, StagedFile],
        indexes: list[StagedFile], feeds: Sequence[StagedFile],
        lines: Mapping[int, Mapping[int, bytes]], *, again: bool,
    ) -> tuple[list[PublishedShard], list[IndexChange]] | None:  # fmt: skip
        """Rename files and indexes into place; return the shards and index changes. None, with
        nothing changed, without the lease. A shard whose rename is refused is set aside, and no
        index names it.
        """
        placed: set[Shard] = set()
        while True:
            done = [self._stager.done(root, each, staged.get(each.taken.shard)) for each in sound]
            changes = self._indexes.changes(done, lines)
            for index in self._indexes.stage(root, changes, again=again):
                indexes.append(index)  # noqa: PERF402
            for file in (*staged.values(), *indexes, *feeds):
                root.flush(file)  # no slow step follows the lease check
                self._keep_lease()
            refused = self._place(root, staged, indexes, placed)
            if refused is None:
                return None
            if not refused:
                return done, changes
            sound = [each for each in sound if each.taken.shard not in refused]
            root.discard([*indexes, *(staged.pop(shard) for shard in refused)])
            indexes.clear()

    @traced("rename")
    def _place(
        self, root: WebRoot, staged: Mapping[Shard, StagedFile], indexes: Collection[StagedFile],
        placed: set[Shard],
    ) -> list[Shard] | None:  # fmt: skip
        """Rename the staged files that are not `placed`; return the refused shards. If there are
        any, no index is placed. None without the lease.
        """
        if not self.state.holds(self._token):
            _log.warning("lease lost before publishing", site=self._name)
            return None
        refused = []
        for shard, file in staged.items():
            try:
                if shard not in placed:
                    root.place(file)
                    placed.add(shard)
            except UnwritableError as error:
                self._aside.add(shard, error)
                refused.append(shard)
        if refused:
            return refused
        # An index may reach the disk before the new bytes of a file that it named already, never
        # before the file itself.
        if not all(file.before for file in staged.values()):
            root.sync()
        for file in indexes:
            root.place(file)
        return refused

    def _keep_lease(self) -> None:
        """Renew the lease: writing may take long on a slow disk."""
        if time.monotonic() - self._held_at > LEASE_MS / 4000:
            self._held_at = time.monotonic()
            self.state.hold(self._token)

    def _commit(
        self,
        run: PublishRun,
        root: WebRoot,
        done: Sequence[PublishedShard],
        written: list[str],
        removed: list[str],
    ) -> PublishResult:
        held = [each.shard for each in done if each.held]
        published = PublishResult(
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
            run_marker.write(root, PublishRun(run.ident, publishes))
            _log.info("published", site=self._name, **note)
        return published

    def adopt(self) -> None:
        """Take over a web root that another state wrote. Raises StoreError, PublishError."""
        self._ownership.adopt()
