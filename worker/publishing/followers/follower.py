"""Follower of one target: writes what was committed and the target lacks, in the order of a pass.

A site may have several targets. Whoever publishes writes one of them and commits; each other one
follows from the committed blocks and index lines, under a lease of its own. What it is about to
write is noted before: after a crash these files are compared, all others are right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import redis

from shared.config.sites.site import Site
from shared.config.sites.targets import TargetSettings
from shared.errors import PublishError, ShardError, UnwritableError
from shared.sitemap import shards
from shared.sitemap.shards import Shard
from shared.store.notify.notification_queue import NotificationQueue
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.publish_work import PublishRun
from shared.store.targets.target_state import INDEX, TargetChanges, TargetState
from shared.telemetry.logs import logger
from worker.publishing.file_migration import FileMigration
from worker.publishing.indexes import IndexChange, Indexes, index_content
from worker.publishing.outputs.feeds import FeedFiles
from worker.publishing.outputs.output_files import OutputFiles
from worker.publishing.shard_file import ShardFiles, file_urls, path_of
from worker.publishing.static import static_pages
from worker.publishing.targets.ownership import Ownership
from worker.publishing.targets.registry import open_target
from worker.publishing.targets.target import StagedFile, Target

PART = 16
"""Files that are staged and placed at once: memory and open files stay bounded."""
FEW = 64
"""Publishes that a publisher makes up for itself before it leads; more are left to the follower."""

WAIT_S = 2.0
"""Seconds that a publisher waits for a follower which is writing the same target."""

_log = logger("follower")


class _Outcome(NamedTuple):
    """Outcome of a pass: names as in TargetState; files written, those of them that are new."""

    done: list[str]
    failed: dict[str, str]
    gone: list[Shard]
    written: list[str]
    new: list[str]


class Follower:
    """Follower of the target `settings` of one site, in one process."""

    def __init__(
        self, client: redis.Redis, name: str, site: Site, settings: TargetSettings, consumer: str
    ) -> None:
        self._name, self._site, self.ident = name, site, settings.ident
        self._settings = settings
        self._state = PublishState(client, name)
        self.target = TargetState(client, name, self.ident, consumer)
        self.ownership = Ownership(self._state, name, site, settings)
        self._files, self._migration = ShardFiles(site), FileMigration(client, name, site)
        self._indexes = Indexes(self._state, name, site)
        self._notices = NotificationQueue(client, name)
        self._feeds = FeedFiles(self._state, name, site)
        self._outputs = OutputFiles(client, name, site)

    def tick(self, progress: Callable[[], None] = lambda: None) -> bool:
        """Bring the target up to date if it is behind or lost; return True if more may be left.

        `progress` is called between files. Raises StoreError, PublishError.
        """
        root = self.ownership.root
        lost = root is None or not root.stands()
        if not (lost or self.target.behind()) or not self.target.take():
            return False
        try:
            return self._follow(progress)
        except PublishError as error:
            self._failed(str(error))
            raise
        finally:
            self.target.release()

    def lead(self, run: PublishRun, keep_lease: Callable[[], None]) -> bool:
        """Take the lease of the target for a publish pass over the state `run`, and make up for
        what the target lacks; False if another writes it or it lacks too much: `tick` is due.

        Raises StoreError, PublishError.
        """
        ready, deadline = False, time.monotonic() + WAIT_S
        while not self.target.take():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        try:
            if self.ownership.root is None or not self.ownership.root.is_of(run):
                _, lost = self.ownership.open(run, keep_lease)
                if lost:
                    self.target.forget()
            behind = self.target.behind()
            if 0 < behind <= FEW:
                self._follow(keep_lease)
                behind = 0 if self.target.take() and not self.target.behind() else FEW
            ready = not behind
        except PublishError as error:
            self._failed(str(error))
            raise
        finally:
            if not ready:
                self.target.release()
        return ready

    def tidy(self) -> None:
        """Remove files of earlier settings; not while a pass is due. Raises StoreError,
        PublishError.
        """
        root = self.ownership.root
        if root is None or not self.target.take():
            return
        try:
            if not self.target.behind():
                self._migration.remove_stray(root)
        finally:
            self.target.release()

    def opened(self) -> Target:
        """Return the target, opened anew. Raises PublishError."""
        return open_target(self._site, self._settings)

    def adopt(self) -> None:
        """Take over a target that another state wrote. Raises StoreError, PublishError."""
        self.ownership.adopt()
        self.target.forget()

    def _failed(self, reason: str) -> None:
        if self.target.failed(reason):
            _log.error("target not written", site=self._name, target=self.ident, reason=reason)

    def _follow(self, progress: Callable[[], None]) -> bool:
        """Write what the target lacks, and record it. Raises StoreError, PublishError."""
        changes = self.target.changes(self._site.index_shards)
        if not changes.run.ident:
            return False  # nothing was ever published
        root, lost = self.ownership.open(changes.run, progress)
        if lost and not changes.whole:
            self.target.forget()
            changes = self.target.changes(self._site.index_shards)
        done = self._write(root, changes, progress)
        if done is None:
            return True
        if done.failed:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in done.failed.items())
            raise PublishError(f"not all files could be written: {reasons}")
        self._purge(changes, done)
        commit = self.target.complete(changes, done.done)
        run = changes.run._replace(history=commit.history)
        if commit.publishes and commit.confirmed and done.written and not root.mark(run):
            self.target.forget()
        if not commit.publishes:
            _log.warning("lease of a target lost", site=self._name, target=self.ident)
            return True
        if done.written:
            _log.info("followed", site=self._name, target=self.ident, written=len(done.written))
        return False

    def _purge(self, changes: TargetChanges, done: _Outcome) -> None:
        """Have caches fetch what was written, before or after a crash: they may hold the old file
        of this target.
        """
        doubted = (shard for name in changes.doubts if (shard := Shard.read(name.encode())))
        names = {*done.written, *(self._files.path(shard) for shard in doubted)}
        urls = file_urls(self._site, sorted(names)).split()
        if urls and self._site.notify.of_files:
            self._notices.enqueue(self._site.notify.of_files, urls, changes.at_ms)

    def _write(
        self, root: Target, changes: TargetChanges, progress: Callable[[], None]
    ) -> _Outcome | None:
        """Write shards, indexes, feeds and robots.txt, then remove; None to be begun anew."""
        done = self._write_shards(root, changes, progress)
        if done is None or not self._write_indexes(root, changes, done):
            return None
        done.written.extend(self._feeds.write(root))
        done.written.extend(self._outputs.follow(root, changes, progress))
        empty = [IndexChange(page, {}) for page, lines in changes.lines.items() if not lines]
        if done.new or empty or changes.whole or changes.doubts:
            done.written.extend(self._indexes.follow(root, empty))
        if changes.whole or changes.doubts:
            static_pages.place(root, self._site)
        if done.failed:
            return done  # an old index may name what would be removed
        gone = [path_of(shard, form) for shard in done.gone for form in shards.FORMS]
        if gone and self.target.doubt():
            done.written.extend(self._migration.remove(root, gone))
        if changes.whole and self.target.doubt():
            done.written.extend(self._migration.remove_stray(root))
        if done.written:
            root.sync()
        return done

    def _write_shards(
        self, root: Target, changes: TargetChanges, progress: Callable[[], None]
    ) -> _Outcome | None:
        names = [name for name in {*changes.changed, *changes.doubts} if INDEX not in name]
        due = sorted({shard for name in names if (shard := Shard.read(name.encode()))})
        if changes.whole:
            due = sorted({*due, *self._state.files(self._state.sections())})
        done = _Outcome([], {}, [], [], [])
        for start in range(0, len(due), PART):
            progress()
            part = due[start : start + PART]
            if not self.target.doubt([str(shard) for shard in part]):
                return None
            staged = [file for shard in part if (file := self._staged(root, shard, changes, done))]
            try:
                if not self._place(root, staged, done):
                    return None
            finally:
                root.discard(staged)
        if done.written:
            root.sync()  # before an index names the new ones
        # Committed after these lines were read: they name files that are no longer to be had.
        listed = {line for lines in changes.lines.values() for line in lines.values()}
        urls = {self._files.line(shard, 0).partition(b"<lastmod>")[0] for shard in done.gone}
        return None if any(line.partition(b"<lastmod>")[0] in urls for line in listed) else done

    def _staged(
        self, root: Target, shard: Shard, changes: TargetChanges, done: _Outcome
    ) -> StagedFile | None:
        """Return the file of `shard`, staged; None if the target has it, or there is none."""
        name, path = str(shard), self._files.path(shard)
        file, content = self._state.published(shard)
        if file is None:
            done.gone.append(shard)
            done.done.append(name)
            return None
        try:
            pieces = self._files.content(shard, content)
            compared = changes.whole or name in changes.doubts
            if compared:
                same = root.read_own(path) == b"".join(pieces)
            else:
                same = root.mtime(path) == file.lastmod
            done.done.append(name)
            return None if same else root.stage(path, pieces, dated=file.lastmod)
        except ShardError as error:
            done.failed[name] = str(error)
            return None

    def _place(self, root: Target, staged: Sequence[StagedFile], done: _Outcome) -> bool:
        """Place files; False without the lease."""
        for file in staged:
            root.flush(file)
        for file in staged:
            if not self.target.doubt():
                return False
            try:
                root.place(file)
                done.written.append(file.name)
                done.new.extend([] if file.before else [file.name])
            except UnwritableError as error:
                done.failed[file.name] = str(error)
        return True

    def _write_indexes(self, root: Target, changes: TargetChanges, done: _Outcome) -> bool:
        if done.failed:
            return True  # the old indexes name old files, which all exist
        if not self.target.doubt([f"{INDEX}{page}" for page in changes.lines]):
            return False
        staged = []
        try:
            for page, content in self._index_files(changes.lines):
                name = shards.index_name(page, packed=self._site.outputs.gzip_index)
                if root.read_own(name) != content:
                    staged.append(root.stage(name, [content]))
            if not self._place(root, staged, done):
                return False
        finally:
            root.discard(staged)
        done.done.extend(f"{INDEX}{page}" for page in changes.lines)
        return True

    def _index_files(self, lines: Mapping[int, Mapping[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for page, of in lines.items() if self._site.index else ():
            if of:
                yield page, index_content(self._site, of)
