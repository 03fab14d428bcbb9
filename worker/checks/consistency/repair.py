"""Repair of a site's state where its parts disagree: the first step of `sitemapd rebuild`.

It works in rounds: a flaw that one repair reveals, such as a group that lists a lost page, is left
to the next. Lines and records come first, then claims and groups, then totals. Every repair is
written whole or not at all and leaves consistent records: a killed run is simply started again. A
repair whose input events have changed meanwhile is decided again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import redis

from shared.clock import now_ms
from shared.config.sites.site import Site
from shared.domain.page_record import TOMBSTONE_MS, PageRecord, field_of
from shared.sitemap.shards import Shard
from shared.store.pages.amendments import Amendment, Amendments
from shared.store.pages.page_repository import PageRepository
from shared.store.pages.shard_contents import lists
from shared.store.publishing.publish_state import PublishState
from worker.checks.consistency.examination import Consistency
from worker.checks.consistency.flaws import (
    LOST_LINE,
    NOT_QUEUED,
    NOT_RECIPROCAL,
    NOT_SCHEDULED,
    OTHER_LINE,
    UNKNOWN_LINE,
    WRONG_CLAIM,
    WRONG_COUNT,
    WRONG_FEED,
    WRONG_FILE,
    Flaw,
)
from worker.checks.consistency.repair_files import FileRepair
from worker.checks.consistency.repair_relations import RelationRepair
from worker.checks.progress import Step

ROUNDS = 6
TRIES = 20
_OF_PAGES = frozenset({LOST_LINE, UNKNOWN_LINE, OTHER_LINE})

Exclusively = Callable[[Callable[[], bool]], bool]
"""Runs a function under the lease; returns its result."""


class Repaired(NamedTuple):
    """Flaws found and repaired, by kind; publishing repairs the records of files.

    `lost` pages have no line and are not listed until they are sent again; `stale` ones are listed
    as before their last change. `left` could not be repaired.
    """

    found: Mapping[str, int]
    lost: int
    stale: int
    left: list[Flaw]

    @property
    def complete(self) -> bool:
        """True if every decision is listed again."""
        return not (self.lost or self.stale or self.left)


class Repair:
    """Repair of one site. `exclusively` holds the lease with `token`."""

    def __init__(
        self, client: redis.Redis, name: str, site: Site, token: str, exclusively: Exclusively
    ) -> None:
        self._consistency = Consistency(client, name, site)
        self._snapshots = self._consistency.snapshots
        self._amending, self._state = Amendments(client, name), PublishState(client, name)
        self._files = FileRepair(self._snapshots, self._amending, site, token)
        pages = PageRepository.of(client, name, site)
        self._relations = RelationRepair(self._snapshots, self._amending, pages)
        self._token, self._exclusively = token, exclusively
        self._unwritten: set[Shard] = set()

    def run(self, step: Step = lambda _: None) -> Repaired:
        """Repair all flaws. Raises StoreError, PublishError, CheckError."""
        found: Counter[str] = Counter()
        left: list[Flaw] = []
        for _ in range(ROUNDS):
            left = self._round(found, step)
            if not left:
                break
        if self._unwritten:
            found[WRONG_FILE] += len(self._unwritten)
            self._state.mark_dirty(self._unwritten)
        self._amending.tell_groups_again()
        return Repaired(found, self._files.lost, self._files.stale, left)

    def _round(self, found: Counter[str], step: Step) -> list[Flaw]:
        """Examine everything and repair it; return some of the flaws, none if all is right."""
        files: dict[Shard, bytearray] = {}
        seen: list[Flaw] = []
        for flaw in self._consistency.flaws(step):
            of_file = flaw.shard is not None and flaw.kind in {*_OF_PAGES, WRONG_COUNT}
            if flaw.kind == WRONG_FILE and flaw.shard:
                self._unwritten.add(flaw.shard)
                continue
            if files and not of_file:
                break  # the next round sees its state after the repairs
            found[flaw.kind] += 1
            if len(seen) < TRIES:
                seen.append(flaw)
            if of_file:
                assert flaw.shard is not None
                files.setdefault(flaw.shard, bytearray()).extend(flaw.digest)
            else:
                self._mend(flaw)
        for shard, digests in files.items():
            self._mend_file(shard, digests)
            step(0)
        if files:
            self._ordinals()
        return seen

    def _mend_file(self, shard: Shard, digests: bytearray) -> None:
        pages = [bytes(digests[at : at + 8]) for at in range(0, len(digests), 8)]
        for _ in range(TRIES):
            if self._exclusively(lambda: self._files.mend(shard, pages)):
                return

    def _mend(self, flaw: Flaw) -> None:
        """Repair one flaw that is not in a file."""
        if flaw.kind == NOT_RECIPROCAL:
            _insist(lambda: self._relations.group(flaw))
        elif flaw.kind == WRONG_CLAIM:
            _insist(lambda: self._relations.claim(flaw))
        elif flaw.kind == NOT_SCHEDULED:
            self._schedule(flaw)
        elif flaw.kind == NOT_QUEUED and flaw.shard:
            self._state.mark_dirty([flaw.shard])
        elif flaw.kind == WRONG_FEED:
            self._drop_from_feed(flaw.key)
        elif flaw.kind == LOST_LINE:
            self._drop_record(flaw.digest)
        elif flaw.kind == WRONG_COUNT:
            self._totals()

    def _schedule(self, flaw: Flaw) -> None:
        keys, amendment = self._snapshots.keys, Amendment()
        if flaw.key:
            amendment.scores.append((keys.expiry, flaw.key, flaw.when))
        else:
            member = b"i" + flaw.owner if flaw.owner else flaw.digest
            amendment.scores.append((keys.tombs, member, now_ms() + TOMBSTONE_MS))
        self._amending.write(amendment)

    def _drop_from_feed(self, loc: str) -> None:
        keys, amendment = self._snapshots.keys, Amendment()
        amendment.fields.append((keys.feed_items, loc, b""))
        amendment.scores.append((keys.feed, loc, ""))
        self._amending.write(amendment)

    def _drop_record(self, digest: bytes) -> None:
        """Drop a record that cannot be read, or that lists a page in no file."""
        record, keys = self._snapshots.records([digest])[digest], self._snapshots.keys
        amendment = Amendment()
        after = b""
        if lists(record):
            gone = PageRecord.unpack(record)._replace(length=0, digest=bytes(5), group=b"")
            after = gone.pack()
            amendment.scores.append((keys.tombs, digest, now_ms() + TOMBSTONE_MS))
        amendment.change(keys.loc(digest), field_of(digest), record, after)
        self._amending.write(amendment)

    def _totals(self) -> None:
        """Repair sums, ordinals in the index and tails."""
        self._ordinals()
        names, totals = self._snapshots.sections(), self._consistency.totals()
        for number, section in names.items():
            if (tail := totals.tail(number, section)) is not None:
                amendment = Amendment()
                before, after = tail
                amendment.change(self._snapshots.keys.tails, str(number), before, after.pack())
                self._amending.write(amendment)
        if more := totals.uncounted(sorted(names.values()), self._consistency.mixed):
            self._amending.add_to_count("urls", more)

    def _ordinals(self) -> None:
        """Give each file one ordinal in the index, and remove lines of missing files."""
        self._exclusively(self._reorder)

    def _reorder(self) -> bool:
        keys = self._snapshots.keys
        found = self._snapshots.overview(sorted(self._snapshots.sections().values()))
        amendment, dirty = Amendment(), list[Shard]()
        last = max((state.ordinal for state in found.states.values()), default=-1)
        ever = found.counters.get(b"shards", b"")
        if last >= int(ever or 0):
            amendment.change(keys.counters, "shards", ever, str(last + 1))
            return self._amending.write(amendment, self._token) and self._reorder()
        taken: set[int] = set()
        for shard, state in found.states.items():
            if state.ordinal in taken:
                after = state._replace(
                    generation=state.generation + 1, ordinal=self._amending.new_ordinal()
                )
                key = keys.shards(shard.section)
                amendment.change(key, str(shard.number), state.pack(), after.pack())
                dirty.append(shard)
            taken.add(state.ordinal)
        filed = {found.states[shard].ordinal for shard in found.files if shard in found.states}
        for page, lines in found.lines.items():
            for ordinal in lines.keys() - filed:
                amendment.change(keys.index(page), str(ordinal), lines[ordinal], b"")
        written = amendment.empty or self._amending.write(amendment, self._token)
        lines_of = {ordinal for lines in found.lines.values() for ordinal in lines}
        dirty += [
            shard
            for shard in found.files
            if shard in found.states and found.states[shard].ordinal not in lines_of
        ]
        self._state.mark_dirty(dirty)
        return written


def _insist(attempt: Callable[[], bool]) -> None:
    """Try up to TRIES times, until no other write interferes."""
    for _ in range(TRIES):
        if attempt():
            return
