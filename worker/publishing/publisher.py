"""Write the changed files, and only those: shards, index, feeds, robots.txt; then commit.

A reader sees old files or new ones, and an index whose files all exist: new files are written
before an index names them, and files are removed after no index names them. A crash at any point
leaves the patches in place, and the next publish pass writes the same bytes.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache

import redis

from shared.config.sites.site import Site
from shared.errors import PublishError, ShardError, UnwritableError
from shared.sitemap.shards import Shard
from shared.store.client import PipelinedScript
from shared.store.counting import counter_buffer
from shared.store.keys import LEASE_MS
from shared.store.publishing.publish_batch import PublishLease
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.publish_work import PublishBatch, PublishedShard
from shared.telemetry.logs import logger
from shared.telemetry.tracing import traced
from worker.publishing.file_migration import FileMigration
from worker.publishing.followers.own_target import OwnTarget
from worker.publishing.indexes import IndexChange, Indexes, UnwritableIndexError
from worker.publishing.lease_takeover import LeaseTakeover
from worker.publishing.outputs.feeds import FeedFiles
from worker.publishing.outputs.output_files import OutputFiles
from worker.publishing.publish_pass import PublishPass, PublishResult
from worker.publishing.quarantine import DamagedShards
from worker.publishing.shard_file import MergedShard, ShardFiles, check, file_urls
from worker.publishing.shrink_alarm import ShrinkAlarm
from worker.publishing.static import static_pages
from worker.publishing.targets.ownership import Ownership
from worker.publishing.targets.target import StagedFile

_EXTEND_S = LEASE_MS / 4000
_MOST_OPEN = 16  # staged files at once: more are flushed first, and not kept for the next pass
_log = logger("publisher")
_name_of = lru_cache(10_000)(str)


class Publisher:
    """Publisher of one site. A lease admits one publisher at a time, in any process."""

    def __init__(self, client: redis.Redis, name: str, site: Site, consumer: str) -> None:
        self._state, self._lease = PublishState(client, name), PublishLease(client, name)
        self._name, self._site, self._tally = name, site, counter_buffer.of(client)
        self._files = ShardFiles(site, self._state.content)
        self._indexes = Indexes(self._state, name, site)
        self._feeds = FeedFiles(self._state, name, site)
        self._outputs = OutputFiles(client, name, site)
        self._token = f"{consumer}:{secrets.token_hex(8)}"
        self._takeover = LeaseTakeover(self._lease, name, consumer, self._tally)
        self._own = OwnTarget(client, name, site, consumer) if site.several_targets else None
        self._ownership = self._own.ownership if self._own else Ownership(self._state, name, site)
        self._alarm, self._migration = ShrinkAlarm(name), FileMigration(client, name, site)
        self._aside = DamagedShards(self._state.quarantine, name, self._tally)
        self._purges = " ".join(site.notify.of_files)
        self._extend_at, self._began, self._engines = 0.0, 0.0, site.notify.of_pages

    def begin(self, again: Sequence[Shard] = ()) -> PipelinedScript:
        """Return the script that begins a publish pass, to be pipelined after another one."""
        self._began = time.monotonic()
        self._extend_at = self._began + _EXTEND_S
        aside = self._aside.skipped() if self._aside.failed else ()
        return self._lease.begin(
            self._token, self._site.index_shards, again, aside=aside, bare=self._site.form == "xml"
        )

    def waiting(self, most: int = -1) -> list[Shard]:
        """Return the shards that wait for a publish pass, oldest first. Raises StoreError."""
        return self._state.dirty(most)

    @property
    def damaged(self) -> dict[Shard, str]:
        """Shards that could not be written at the last attempt, with the reason."""
        return self._aside.reasons

    def publish(
        self, again: Sequence[Shard] = (), begin: PipelinedScript | None = None
    ) -> PublishResult | None:
        """Run one publish pass over the shards that wait longest; None if none was possible.

        `again` are shards to compare with their files, with or without patches. Raises StoreError,
        PublishError: then the old files are in place and the work stays queued.
        """
        begun = self._lease.begun(begin or self.begin(again))
        if isinstance(begun, str):
            self._takeover.held_by(begun)
        if not isinstance(begun, PublishBatch):
            return None
        try:
            if self._own is None:
                return self._pass(begun, again=bool(again))
            with self._own.leading(begun.run, self._extend_lease) as ready:
                if ready:
                    return self._pass(begun, again=bool(again))
            self._lease.release(self._token, [each.shard for each in begun.taken])
        except BaseException as error:
            if isinstance(error, PublishError):
                self._aside.stop(error)
            self._lease.release(self._token, [each.shard for each in begun.taken])
            raise
        return None

    def _pass(self, begun: PublishBatch, *, again: bool) -> PublishResult | None:
        root, lost, lines = self._ownership.root, False, begun.lines
        if root is None or not root.is_of(begun.run):
            root, lost = self._ownership.open(begun.run, self._extend_lease)
        if not self._migration.renewed and self._migration.renew_once():
            lines.update({page: self._state.lines(page) for page in lines})
            again = True
        merged = []
        for shard, damage in begun.damaged.items():
            self._aside.add(shard, damage)
        for each in begun.taken:
            try:
                merged.append(self._files.merge(each))
            except ShardError as error:
                self._aside.add(each.shard, error)
        if self._alarm.raised or any(each.held for each in merged):
            self._alarm.tell(merged)
        # Dirty without patches: an older publisher may have written after it lost its lease, or a
        # file was changed by hand.
        again = again or lost or not all(each.edited for each in merged)
        now, result = PublishPass(root, begun, lines, again, {}, [], []), None
        try:
            result = self._write(now, merged)
        finally:
            if result is None:
                root.discard((*now.shards.values(), *now.indexes, *now.feeds))
        return result

    def _write(self, now: PublishPass, merged: Sequence[MergedShard]) -> PublishResult | None:
        """Write all files and commit; None, with nothing changed, without the lease."""
        root, again = now.root, now.again
        sound = self._stage(now, merged)
        if again:
            static_pages.place(root, self._site)
        feeding = self._site.feed or again or not self._feeds.tidied
        if feeding:
            self._feeds.stage(root, now.feeds)
        placed = self._place(now, sound)
        if placed is None:
            return None
        done, changes = placed
        written = [file.name for file in (*now.shards.values(), *now.indexes)]
        if now.feeds:
            written += self._feeds.place(root, now.feeds)
        if changes or again or not self._indexes.robots_checked:
            written += self._indexes.follow(root, changes)
        if self._outputs.on or again:
            written += self._outputs.publish(root, done, merged, self._extend_lease, again=again)
        # No index on disk names the files of empty shards any more.
        gone = [self._files.path(each.taken.shard) for each in done if each.file is None]
        if self._migration.hidden:
            gone += self._migration.take_hidden(each.taken.shard for each in done if each.file)
        if written or gone:
            root.sync()
        removed = self._migration.remove(root, gone) if gone else []
        if feeding:
            removed += self._feeds.tidy(root, again=again)
        damaged = self._aside.reasons_of(now.begun) if self._aside.failed else {}
        dated = max([file.mtime for file in (*now.shards.values(), *now.indexes)], default=0)
        result = self._commit(now, done, written, removed)
        return result._replace(damaged=damaged, dated=dated, full=now.begun.full)

    def _stage(self, now: PublishPass, merged: Sequence[MergedShard]) -> list[MergedShard]:
        """Stage the files of `merged`; return those that may be published."""
        sound, staged = [], deque[StagedFile]()
        for each in merged:
            shard = each.taken.shard
            try:
                file = self._files.stage(now.root, each, again=now.again)
                if file is not None:
                    now.shards[shard] = file
                    staged.append(file)
                check(each)  # while the disk is busy with the file
            except ShardError as error:
                self._set_aside(now, {shard: error})
            else:
                if self._aside.failed:
                    self._aside.drop(shard)
                sound.append(each)
            if len(staged) > _MOST_OPEN:
                each.raw.clear()
                now.root.flush(staged.popleft())
            if time.monotonic() > self._extend_at:
                self._extend_lease()
        return sound

    def _set_aside(self, now: PublishPass, refused: Mapping[Shard, ShardError]) -> None:
        for shard, error in refused.items():
            self._aside.add(shard, error)
        now.root.discard([now.shards.pop(shard) for shard in refused if shard in now.shards])

    def _place(
        self, now: PublishPass, sound: Sequence[MergedShard]
    ) -> tuple[list[PublishedShard], list[IndexChange]] | None:
        """Rename all into place; return the shards, and the changes to follow. None, with nothing
        changed, without the lease. A shard is set aside, and its index as it was, if its rename is
        refused or its index cannot be written while another can.
        """
        root, lines, placed = now.root, now.lines, set[Shard]()
        while True:
            done = [self._files.record(root, e, now.shards.get(e.taken.shard)) for e in sound]
            refused: Mapping[Shard, ShardError] | None
            try:
                changes = self._indexes.stage(root, done, lines, now.indexes, again=now.again)
            except UnwritableIndexError as error:
                refused = {each.taken.shard: error for each in done if each.page == error.page}
                if len(refused) in {0, len(done)}:
                    raise
                lines = {page: of for page, of in lines.items() if page != error.page}
            else:
                for file in (*now.shards.values(), *now.indexes, *now.feeds):
                    root.flush(file)  # no slow step follows the lease check
                    if time.monotonic() > self._extend_at:
                        self._extend_lease()
                refused = self._rename(now, placed)
                if not refused:
                    return None if refused is None else (done, changes)
            self._set_aside(now, refused)
            sound = [each for each in sound if each.taken.shard not in refused]
            root.discard(now.indexes)
            now.indexes.clear()

    @traced("rename")
    def _rename(self, now: PublishPass, placed: set[Shard]) -> dict[Shard, ShardError] | None:
        """Rename the staged files that are not `placed`; return the refused shards. If there are
        any, no index is placed. None without the lease.
        """
        new = any(not file.before for file in now.shards.values())
        if not self._lease.holds(self._token) or (self._own and not self._own.doubt(now)):
            _log.warning("lease lost before publishing", site=self._name)
            return None
        refused = dict[Shard, ShardError]()
        for shard, file in now.shards.items():
            try:
                if shard not in placed:
                    if time.monotonic() > self._extend_at:
                        self._extend_lease()  # object storage takes its time for each
                    now.root.place(file)
                    placed.add(shard)
            except UnwritableError as error:
                refused[shard] = error
        if refused:
            return refused
        # An index may reach the disk before the new bytes of a file that it named already, never
        # before the file itself.
        if new:
            now.root.sync()
        for file in now.indexes:
            now.root.place(file)
        return refused

    def _extend_lease(self) -> None:
        """Extend the lease: writing may take long on a slow disk."""
        self._extend_at = time.monotonic() + _EXTEND_S
        self._lease.extend(self._token)
        if self._own is not None:
            self._own.keep()

    def _commit(
        self, now: PublishPass, done: Sequence[PublishedShard],
        written: list[str], removed: list[str],
    ) -> PublishResult:  # fmt: skip
        held = [each.taken.shard for each in done if each.held]
        published = [each.taken.shard for each in done if not each.held]
        names, kept = [*map(_name_of, published)], [*map(_name_of, held)]
        note = {"shards": names, "written": written, "removed": removed, "held": kept}
        took_ms, files = int((time.monotonic() - self._began) * 1000), (len(written), len(removed))
        versions = self._own.versions(now, done) if self._own else ("", "", "")
        urls = file_urls(self._site, written + removed) if self._purges else ""
        commit = self._lease.commit(
            self._token, done, note, files, self._engines, took_ms, versions, (self._purges, urls)
        )
        if not commit.publishes:
            self._tally.add(self._name, "lease_lost")
            _log.warning("lease lost while publishing: published again later", site=self._name)
            return PublishResult([], written, removed)
        if written or removed:
            run = now.begun.run._replace(publishes=commit.publishes, history=commit.history)
            if commit.confirmed and not now.root.mark(run):
                self._state.mark_dirty(published[:1])
            _log.info("published", site=self._name, **note)
        return PublishResult(published, written, removed, held)

    def adopt(self) -> None:
        """Take over a web root that another state wrote. Raises StoreError, PublishError."""
        self._ownership.adopt()
        if self._own is not None:
            self._own.forget()
