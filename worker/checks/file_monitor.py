"""Find files that were deleted or edited by hand, and have them published again (RELIABILITY F23).

Each round compares every file's size and times, reads the files that have changed since they were
last right, and then a few more in turn, for changes without a trace. A difference only marks a
shard dirty: the publisher compares, and writes what differs.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from shared.config.filenames import index_name
from shared.config.sites.site import Site
from shared.domain.shrink_guard import Peak
from shared.errors import ShardError
from shared.sitemap.shards import Shard
from shared.store.publishing.publish_batch import PublishedFile
from shared.store.publishing.publish_state import PublishState
from shared.store.targets.target_state import INDEX
from shared.telemetry.logs import logger
from worker.publishing.followers.follower import Follower
from worker.publishing.indexes import index_content, named, robots_fault
from worker.publishing.outputs import feeds
from worker.publishing.outputs.output_files import OutputFiles
from worker.publishing.shard_file import ShardFiles, path_of
from worker.publishing.static import static_pages
from worker.publishing.targets.ownership import check_marker, failed_over, read_marker
from worker.publishing.targets.registry import open_own
from worker.publishing.targets.target import FileState, Piece, Target

ROUND_BYTES = 8 * 1024 * 1024
"""Bytes of files that a round reads; the last file is read to its end."""

STALE_S = 30.0
"""Age in seconds of an abandoned staged file: a publisher writes, syncs and renames at once."""

SOON_S = 2.0
MOST_NAMED = 100
REVIEW_S = 60.0

_log = logger("check")


class FileMonitorResult(NamedTuple):
    """Outcome of one round: `wrong` files with the fault, number of files `read`.

    `more` if another round should follow soon.
    """

    wrong: Mapping[str, str]
    read: int
    more: bool


class _Target(NamedTuple):
    """A file to check: of a shard, the index file `page`, or another file of sitemapd."""

    shard: Shard | None = None
    page: int | None = None
    file: PublishedFile | None = None


class FileMonitor:
    """Checks of the files of one site."""

    def __init__(
        self, state: PublishState, name: str, site: Site, *, round_bytes: int = ROUND_BYTES,
        follower: Follower | None = None,
    ) -> None:  # fmt: skip
        """Create the checks; of a site with several targets, of that of `follower`."""
        self._follower = follower
        self._state, self._name, self._site = state, name, site
        self._round_bytes, self._files = round_bytes, ShardFiles(site)
        self._outputs = OutputFiles(state.client, name, site)
        self._right: dict[str, tuple[FileState, PublishedFile | None]] = {}
        self._doubts: dict[str, tuple[FileState | None, PublishedFile | None]] = {}
        self._cursor = ""
        self._due, self._review_due = 0.0, 0.0

    def due(self) -> bool:
        """True if `tick` would run something."""
        now = time.monotonic()
        return now >= self._review_due or bool(self._site.check_interval and now >= self._due)

    def tick(self) -> None:
        """Run what is due. Raises StoreError, or PublishError if files could not be compared."""
        now = time.monotonic()
        if now >= self._review_due:
            self._review_due = now + REVIEW_S
            self.review()
        if self._site.check_interval and now >= self._due:
            self._due = now + self._site.check_interval
            if self.round().more:
                self._due = now + min(SOON_S, self._site.check_interval)

    def review(self) -> None:
        """Publish again the shards on shrink hold only because of a peak that has passed.

        Raises StoreError.
        """
        held = self._state.shrink.held()
        files = self._state.files({shard.section for shard in held})
        now = int(time.time())
        for shard, hold in held.items():
            if (file := files.get(shard)) is not None:
                peak = Peak(file.peak, file.peak_since)
                if not self._site.shrink.judge(file.urls, peak, hold.urls, now).holds:
                    self._state.mark_dirty([shard])

    def round(self) -> FileMonitorResult:
        """Check every file, read some of them, and mark wrong ones for publishing.

        A fault counts if two rounds find it: a publisher may be about to record the change. Raises
        StoreError, PublishError; ForeignStateError if the files are not of this state.
        """
        files = self._state.files(self._state.sections())
        if not files:
            return FileMonitorResult({}, 0, more=False)
        if self._follower and self._follower.target.behind():
            return FileMonitorResult({}, 0, more=False)
        root = self._follower.opened() if self._follower else open_own(self._site)
        try:
            root.sweep(STALE_S)
            marker, run = read_marker(root), self._state.known_run()
            if marker is not None and not failed_over(marker, self._state, run):
                check_marker(root, marker, run, self._name)
            checked = self._compare(root, self._targets(files))
        finally:
            root.close()
        if checked.wrong:
            self._have_put_right(checked.wrong, files)
        return checked

    def _targets(self, files: Mapping[Shard, PublishedFile]) -> dict[str, _Target]:
        form = self._site.form
        targets = {path_of(shard, form): _Target(shard, file=file) for shard, file in files.items()}
        for page in self._state.pages(self._site.index_shards) if self._site.index else ():
            targets[index_name(self._site, page)] = _Target(page=page)
        further = (*static_pages.NAMES, *feeds.NAMES, *self._outputs.names(), "robots.txt")
        return targets | dict.fromkeys(further, _Target())

    def _compare(self, root: Target, targets: Mapping[str, _Target]) -> FileMonitorResult:
        looks = root.look_at(targets)
        changed = {
            name
            for name, target in targets.items()
            if name in self._doubts or not self._unchanged(target, name, looks[name])
        }
        wrong, left, read, more = dict[str, str](), self._round_bytes, 0, False
        for name in (*sorted(changed), *self._in_turn(targets, changed)):
            if left <= 0:
                more |= name in changed
                continue
            look, target = looks[name], targets[name]
            left, read = left - (look.size if look else 0), read + 1
            self._cursor = self._cursor if name in changed else name
            fault = self._fault(root, name, target)
            if fault is None:
                self._doubts.pop(name, None)
                if look is not None and look == root.look(name):
                    self._right[name] = (look, target.file)
            elif self._doubts.pop(name, ()) == (look, target.file):
                wrong[name] = fault
            else:
                self._doubts[name], more = (look, target.file), True
        self._right = {name: of for name, of in self._right.items() if name in targets}
        self._doubts = {name: of for name, of in self._doubts.items() if name in targets}
        return FileMonitorResult(wrong, read, more)

    def _unchanged(self, target: _Target, name: str, look: FileState | None) -> bool:
        """Return True if the file is as when last right, or as the publisher has just left it."""
        if look is None:
            # None is right for some files, such as robots.txt, and is cheap to check.
            return False
        before, file = self._right.get(name), target.file
        if before is not None and before == (look, file):
            return True
        if file is None or (before is not None and before[1] == file):
            return False
        as_recorded = look.mtime_ns // 10**9 == file.lastmod
        if as_recorded and (self._site.form != "xml" or look.size == file.size):
            self._right[name] = (look, file)
            return True
        return False

    def _in_turn(self, targets: Collection[str], changed: Collection[str]) -> Iterator[str]:
        """Yield all other names, from where the last round stopped."""
        names = sorted(name for name in targets if name not in changed)
        yield from (name for name in names if name > self._cursor)
        yield from (name for name in names if name <= self._cursor)

    def _fault(self, root: Target, name: str, target: _Target) -> str | None:
        if name == "robots.txt":
            return robots_fault(root, self._site, named(self._state, self._site))
        if name in static_pages.NAMES:
            return static_pages.fault(root, self._site, name)
        if name in feeds.NAMES:
            return feeds.fault(root, self._state, self._site, name)
        if target == _Target():
            return None if self._state.dirty(1) else self._outputs.fault(root, name)
        if root.look(name) is None:
            return "missing"
        try:
            pieces = self._pieces(target)
        except ShardError as error:
            _log.error("file check failed", site=self._name, file=name, reason=str(error))
            return None
        content, at = memoryview(root.read_own(name) or b""), 0
        for piece in pieces:
            if content[at : at + len(piece)] != piece:
                return "differs"
            at += len(piece)
        return None if at == len(content) else "differs"

    def _pieces(self, target: _Target) -> list[Piece]:
        """Return the expected content: as last published, without waiting patches and shrink
        holds.
        """
        if target.shard is not None:
            content = self._state.content(target.shard)
            return self._files.content(target.shard, content)
        assert target.page is not None
        return [index_content(self._site, self._state.lines(target.page))]

    def _have_put_right(
        self, wrong: Mapping[str, str], files: Mapping[Shard, PublishedFile]
    ) -> None:
        """Mark a shard dirty for each file: its own, one of that index, or any."""
        by_path = {path_of(shard, self._site.form): shard for shard in files}
        states = self._state.shards({shard.section for shard in files})
        of_index = {
            index_name(self._site, states[shard].ordinal // self._site.index_shards): shard
            for shard in files
            if shard in states
        }
        for name, what in islice(wrong.items(), MOST_NAMED):
            _log.warning("file changed by hand restored", site=self._name, file=name, what=what)
        if len(wrong) > MOST_NAMED:
            more = len(wrong) - MOST_NAMED
            _log.warning("further files changed by hand restored", site=self._name, files=more)
        if self._follower is not None:
            paths = {path: str(shard) for path, shard in by_path.items()}
            paths |= {name: str(of) for name in wrong if (of := self._outputs.shard_of(name))}
            pages = {index_name(self._site, page): page for page in range(len(states) + 1)}
            self._follower.target.mistrust(
                {paths.get(name) or f"{INDEX}{pages.get(name, 0)}" for name in wrong}
            )
            return
        anyone = next(iter(files))
        self._state.mark_dirty(
            {
                by_path.get(name) or of_index.get(name) or self._outputs.shard_of(name) or anyone
                for name in wrong
            }
        )
