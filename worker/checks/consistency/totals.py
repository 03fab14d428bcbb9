"""Comparison of a site's totals with their parts."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from shared.config.filenames import index_name
from shared.config.sites.site import Site
from shared.domain.batch_state import NEWS
from shared.errors import ShardError
from shared.sitemap import shards
from shared.sitemap.shards import Shard
from shared.store.pages.shard_contents import ShardContent, key_of
from shared.store.pages.summaries import Overview, Summaries
from worker.checks.consistency.flaws import NOT_QUEUED, WRONG_COUNT, WRONG_FILE, Flaw

TRIES = 5
_TAIL = struct.Struct(">IIII")


class Tail(NamedTuple):
    """Place for new pages of a section: shard, block, and pages and bytes already in that block."""

    shard: int
    block: int
    urls: int
    size: int

    def pack(self) -> bytes:
        """Return the form in which apply.lua reads and writes it."""
        return _TAIL.pack(*self)

    @classmethod
    def unpack(cls, stored: bytes) -> Tail | None:
        """Return the tail packed by `pack`; None for anything else."""
        return cls(*_TAIL.unpack(stored)) if len(stored) == _TAIL.size else None


class Totals:
    """Sums, ordinals, tails and dirty marks of one site. `reusing` are the sections without a
    tail.
    """

    def __init__(self, snapshots: Summaries, site: Site, reusing: Collection[str]) -> None:
        self._snapshots, self._site, self._reusing = snapshots, site, reusing

    def flaws(self, mixed: Collection[Shard]) -> Iterator[Flaw]:
        """Yield all flaws; `mixed` are shards that list news. Raises StoreError."""
        names = self._snapshots.sections()
        sections = sorted(names.values())
        if more := self.uncounted(sections, mixed):
            said = f"{abs(more)} pages too {'few' if more > 0 else 'many'}"
            yield Flaw(WRONG_COUNT, "counters", said)
        found = self._snapshots.overview(sections)
        yield from self._ordinals(found)
        for shard in sorted(found.waiting - found.queued):
            yield Flaw(NOT_QUEUED, self._file(shard), "its changes are in no queue", shard)
        for number, section in sorted(names.items()):
            if self.tail(number, section) is not None:
                where = self._file(Shard(section, 1))
                yield Flaw(WRONG_COUNT, where, "new pages would go to the wrong place")

    def _file(self, shard: Shard) -> str:
        return shards.file_name(shard, self._site.form)

    def uncounted(self, sections: Sequence[str], mixed: Collection[Shard]) -> int:
        """Return the number of listed pages, by shard states, beyond the counter of pages.

        News entries are not counted as pages, but in the state of their shard. 0 if the number
        cannot be known. Raises StoreError.
        """
        every = list(mixed)
        for _ in range(TRIES):
            urls, states, contents = self._snapshots.counted(sections, every)
            unread = [s for s in states if s.section in self._reusing and s not in every]
            if not unread:
                with suppress(ShardError):
                    twins = sum(map(_news_of, contents))
                    return sum(state.urls for state in states.values()) - twins - urls
                return 0
            every += unread
        return 0

    def _ordinals(self, found: Overview) -> Iterator[Flaw]:
        times = Counter(state.ordinal for state in found.states.values())
        ever = int(found.counters.get(b"shards", b"0"))
        lines = {ordinal for page in found.lines.values() for ordinal in page}
        for shard, state in found.states.items():
            if times[state.ordinal] > 1:
                detail = f"shares its place {state.ordinal} in the index with another file"
                yield Flaw(WRONG_COUNT, self._file(shard), detail, shard)
            if shard in found.files and state.ordinal not in lines:
                yield Flaw(WRONG_FILE, self._file(shard), "no index has a line of it", shard)
        last = max(times, default=-1)
        if last >= ever:
            detail = f"{ever} files were ever made, and one has the place {last} in the index"
            yield Flaw(WRONG_COUNT, "counters", detail)
        filed = {found.states[shard].ordinal for shard in found.files if shard in found.states}
        for page, of in found.lines.items():
            for ordinal in sorted(of.keys() - filed):
                detail = f"the index has a line at {ordinal} for no file"
                yield Flaw(WRONG_COUNT, index_name(self._site, page), detail)

    def tail(self, number: int, section: str) -> tuple[bytes, Tail] | None:
        """Return the stored tail of a section and the required one; None if it is right.

        Raises StoreError.
        """
        if section in self._reusing:
            return None
        last = Shard(section, 1)
        for _ in range(TRIES):
            stored, numbers, content = self._snapshots.tail(number, last)
            if not numbers:
                return None
            if numbers[-1] == last.number:
                return _tail(stored, content)
            last = Shard(section, numbers[-1])
        return None


def _tail(stored: bytes, content: ShardContent) -> tuple[bytes, Tail] | None:
    """Compare a stored tail with the last block: it may count more, the places of deleted pages."""
    least, known = Tail(content.shard.number, 0, 0, 0), Tail.unpack(stored)
    with suppress(ShardError):
        for lines in content.lines():
            if lines.listed:
                least = Tail(
                    least.shard, lines.number, len(lines.listed), sum(map(len, lines.listed))
                )
    if known and known.shard == least.shard and known[1:3] >= least[1:3]:
        return None
    return stored, least


def _news_of(content: ShardContent) -> int:
    return sum(
        key_of(fragment).startswith(NEWS) for lines in content.lines() for fragment in lines.listed
    )
