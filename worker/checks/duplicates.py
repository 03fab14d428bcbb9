"""Pages that are listed in more than one place (PROTOCOL L10), found in bounded memory.

Each page leaves 12 bytes in a temporary file: the hash of its loc, and in which shard it is. The
hashes are dealt out into parts by their last bits; one part after the other is looked through for
what is in it twice. What is said to be twice is then read again, and compared loc by loc.
"""

from __future__ import annotations

import contextlib
import tempfile
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

from shared.errors import ShardError
from shared.sitemap import fragments
from shared.sitemap.shards import Shard
from shared.store.pages.page_scan import PageScan
from worker.checks.consistency.join_spool import no_room
from worker.checks.progress import Step

PARTS = 256
"""Of 10,000,000 pages, one holds 39,000: 4 MB while it is looked through."""

_FLUSH = 2_048
_STEP = 2_000
MOST_PAIRS = 200
MOST_HASHES = 100_000
"""Pairs of shards that are read again, and pages looked for there; what is beyond is only counted.
"""


class DuplicatePages:
    """Notes every page of a site, and names those that were noted twice."""

    def __init__(self, flush: int = _FLUSH) -> None:
        """`flush` is how many hashes of a part are kept in memory."""
        self._flush = flush
        self._hashes = [array("q") for _ in range(PARTS)]
        self._shards = [array("i") for _ in range(PARTS)]
        self._spilt: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]
        self._names: list[Shard] = []
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        except OSError as error:
            raise no_room(error) from error

    def close(self) -> None:
        """Forget everything."""
        self._file.close()

    def note(self, shard: Shard, locs: Iterable[str]) -> None:
        """`shard` lists these; all pages of a shard follow one another."""
        if not self._names or self._names[-1] != shard:
            self._names.append(shard)
        number, hashes, shards = len(self._names) - 1, self._hashes, self._shards
        for hashed in map(hash, locs):
            part = hashed & (PARTS - 1)
            hashes[part].append(hashed)
            shards[part].append(number)
        for part, held in enumerate(hashes):
            if len(held) >= self._flush:
                self._spill(part)

    def found(self, listing: PageScan, step: Step) -> Iterator[tuple[str, int, Sequence[Shard]]]:
        """Each page listed twice, how often too many it is, and the shards that list it.

        Beyond MOST_PAIRS and MOST_HASHES, pages come without name and in one sum.
        """
        pairs: dict[tuple[int, int], set[int]] = {}
        kept = beyond = 0
        for pair, hashed in self._doubles(step):
            if kept < MOST_HASHES and (pair in pairs or len(pairs) < MOST_PAIRS):
                pairs.setdefault(pair, set()).add(hashed)
                kept += 1
            else:
                beyond += 1
        for (one, other), hashes in pairs.items():
            shards = [self._names[number] for number in sorted({one, other})]
            for loc, times in _listed(listing, shards, hashes, step).items():
                if times > 1:
                    yield loc, times - 1, shards
        if beyond:
            yield "", beyond, ()

    def _doubles(self, step: Step) -> Iterator[tuple[tuple[int, int], int]]:
        """Each hash that is there again, and the shards it was first and is now noted for."""
        for part in range(PARTS):
            first: dict[int, int] = {}
            for at, (hashed, number) in enumerate(self._read(part)):
                if at % _STEP == 0:
                    step(0)
                if hashed in first:
                    yield (first[hashed], number), hashed
                else:
                    first[hashed] = number

    def _spill(self, part: int) -> None:
        hashes, shards = self._hashes[part], self._shards[part]
        try:
            self._spilt[part].append((self._file.tell(), len(hashes)))
            self._file.write(hashes.tobytes() + shards.tobytes())
        except OSError as error:
            raise no_room(error) from error
        self._hashes[part], self._shards[part] = array("q"), array("i")

    def _read(self, part: int) -> Iterator[tuple[int, int]]:
        for at, count in self._spilt[part]:
            self._file.seek(at)
            hashes, shards = array("q"), array("i")
            hashes.frombytes(self._file.read(count * hashes.itemsize))
            shards.frombytes(self._file.read(count * shards.itemsize))
            yield from zip(hashes, shards, strict=True)
        yield from zip(self._hashes[part], self._shards[part], strict=True)


def _listed(
    listing: PageScan, shards: Sequence[Shard], hashes: Container[int], step: Step
) -> Counter[str]:
    """How often these shards list each page that has one of `hashes`, at one instant: a page that
    moved while the others were looked at is listed once.
    """
    found: Counter[str] = Counter()
    for blocks in listing.published(shards):
        for block in blocks:
            step(0)
            with contextlib.suppress(ShardError):
                locs = (line[:-1].decode() for line in fragments.lines(block.raw()))
                found.update(loc for loc in locs if hash(loc) in hashes)
    return found
