"""Verify the published files of a site against its state, and rebuild them from it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import redis

from shared.config import filenames
from shared.config.sites.site import Site
from shared.errors import PublishError
from shared.sitemap.shards import Shard
from shared.store.publishing.publish_batch import PASS_SHARDS, PublishLease
from shared.store.publishing.publish_state import PublishState
from shared.telemetry.logs import logger
from worker.checks.consistency.repair import Repair, Repaired
from worker.publishing.file_migration import FileMigration
from worker.publishing.followers.follow_service import followers_of
from worker.publishing.indexes import index_content, named, robots_fault
from worker.publishing.outputs import feeds
from worker.publishing.outputs.output_files import OutputFiles
from worker.publishing.publish_pass import PublishResult
from worker.publishing.publisher import Publisher
from worker.publishing.shard_file import ShardFiles
from worker.publishing.targets.registry import open_own
from worker.publishing.targets.target import Target

BUSY_S = 30

_T = TypeVar("_T")
_log = logger("verify")


class Difference(NamedTuple):
    """One file that differs from the state: `missing`, `differs`, or `unexpected`."""

    name: str
    what: str


class Verification:
    """Verification and rebuild of the published files of one site."""

    def __init__(self, client: redis.Redis, name: str, site: Site, consumer: str) -> None:
        self.publisher = Publisher(client, name, site, consumer)
        self._state, self._lease = PublishState(client, name), PublishLease(client, name)
        self._migration = FileMigration(client, name, site)
        self._name, self._site, self._files = name, site, ShardFiles(site)
        self._outputs = OutputFiles(client, name, site)
        self._token = f"{consumer}:{secrets.token_hex(8)}"
        self._followers = followers_of(client, name, site, consumer)
        self._repair = Repair(client, name, site, self._token, self._exclusively)
        self.repaired = Repaired({}, 0, 0, [])

    def verify(self, seen: Callable[[int], None] = lambda _: None) -> Iterator[Difference]:
        """Yield every difference, byte for byte; `seen` is called after each compared file.

        The state is what was published last, without waiting patches. Of a site with several
        targets, those that this host writes. Raises StoreError, PublishError.
        """
        if not self._followers:
            yield from self._verify(open_own(self._site), seen)
        for each in self._followers:
            for found in self._verify(each.opened(), seen):
                yield found._replace(name=f"{each.ident}: {found.name}")

    def _verify(self, root: Target, seen: Callable[[int], None]) -> Iterator[Difference]:
        try:
            expected = {*self._migration.waiting()}
            for name, content in self._expected():
                expected.add(name)
                found = root.read_own(name)
                if found is None:
                    yield Difference(name, "missing")
                elif found != content:
                    yield Difference(name, "differs")
                seen(1)
            yield from self._robots(root)
            yield from self._further(root)
            for name in self._migration.stray(root, expected):
                yield Difference(name, "unexpected")
        finally:
            root.close()

    def files(self) -> int:
        """Return the number of files that `verify` compares."""
        pages = self._state.pages(self._site.index_shards)
        one = len(self._state.files(self._migration.sections)) + len(pages) * self._site.index
        return one * max(1, len(self._followers))

    def rebuild(self, seen: Callable[[int], None] = lambda _: None) -> list[str]:
        """Repair the state (`repaired` is the outcome), then write every file that differs from it.

        Waiting patches are included. Each file is staged and renamed into place; files no longer
        named are removed. Returns the names of all files touched. Shards of a shrink hold are
        written as last published, and stay on hold. Raises StoreError, and PublishError if another
        publisher holds the lease for BUSY_S, or, after all others are written, if some shards
        cannot be.
        """
        touched = []
        self.repaired = self._repair.run(lambda _: seen(0))
        self._exclusively(self._renew)
        self._follow()
        every = list(self._state.shards(self._migration.sections))
        for start in range(0, len(every), PASS_SHARDS):
            chunk = every[start : start + PASS_SHARDS]
            while chunk:
                published = self._publish(chunk)
                touched += published.written + published.removed
                done = {*published.shards, *published.held, *published.damaged}
                seen(len(done))
                chunk = [shard for shard in chunk if shard not in done]
        # A file that was placed and not committed is not named either.
        touched += self._exclusively(self._remove_stray)
        for each in self._followers:
            each.target.forget()
        self._follow()
        raise_damaged(self.publisher.damaged)
        return touched

    def adopt(self) -> None:
        """Take over the targets that another state wrote. Raises StoreError, PublishError."""
        self.publisher.adopt()
        self._outputs.adopted()
        for each in self._followers:
            each.adopt()

    def _follow(self) -> None:
        """Bring the targets that this host writes up to date, if there are several."""
        deadline = time.monotonic() + BUSY_S
        for each in self._followers:
            while each.tick() or each.target.behind():
                if time.monotonic() > deadline:
                    raise _busy()
                time.sleep(0.02)

    def _renew(self) -> None:
        """Apply changed settings, and move every index line to its place under them."""
        self._migration.renew()
        self._state.repage(self._site.index_shards)

    def _exclusively(self, work: Callable[[], _T]) -> _T:
        """Run `work` under the lease; PublishError if another publisher holds it for BUSY_S."""
        deadline = time.monotonic() + BUSY_S
        while not self._lease.take(self._token):
            if time.monotonic() > deadline:
                raise _busy()
            time.sleep(0.02)
        try:
            return work()
        finally:
            self._lease.release(self._token)

    def _remove_stray(self) -> list[str]:
        root = open_own(self._site)
        try:
            removed = self._migration.remove_due(root) + self._migration.remove_stray(root)
        finally:
            root.close()
        return removed

    def _expected(self) -> Iterator[tuple[str, bytes]]:
        files = self._state.files(self._migration.sections)
        for shard in files:
            content = self._files.content(shard, self._state.content(shard))
            yield self._files.path(shard), b"".join(content)
        # Under the current settings: the recorded ones may differ.
        for page, lines in self._migration.lines().items() if self._site.index else ():
            yield filenames.index_name(self._site, page), index_content(self._site, lines)

    def _robots(self, root: Target) -> Iterator[Difference]:
        if what := robots_fault(root, self._site, named(self._state, self._site)):
            yield Difference("robots.txt", what)

    def _further(self, root: Target) -> Iterator[Difference]:
        for name in feeds.NAMES:
            if what := feeds.fault(root, self._state, self._site, name):
                yield Difference(name, "unexpected" if what == "unwanted" else what)
        for name, what in self._outputs.faults(root):
            yield Difference(name, "unexpected" if what == "unwanted" else what)

    def _publish(self, chunk: list[Shard]) -> PublishResult:
        deadline = time.monotonic() + BUSY_S
        while time.monotonic() < deadline:
            published = self.publisher.publish(again=chunk)
            if published is not None and (published.shards or published.held or published.damaged):
                return published
            time.sleep(0.02)
        raise _busy()


def raise_damaged(damaged: Mapping[Shard, str]) -> None:
    """Raise PublishError with the reasons if some shards cannot be written."""
    if damaged:
        named = "; ".join(f"{shard}: {reason}" for shard, reason in damaged.items())
        raise PublishError(
            f"all but these could be written, whose old files stay: {named}. Restore the Redis data"
        )


def _busy() -> PublishError:
    return PublishError(f"another publisher keeps the site busy for {BUSY_S} s; try again")
