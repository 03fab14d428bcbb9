"""Pages listed in more than one place (PROTOCOL L10), found in bounded memory.

Each page adds 12 bytes to a temporary file: the hash of its loc, and its shard. The hashes are
split into parts by their last bits, and each part is searched for duplicates. The shards of
duplicate hashes are then read again, and compared loc by loc.
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
from worker.checks.consistency.join_spool import spooling
from worker.checks.progress import Step

PARTS = 256
"""Number of parts; with 10,000,000 pages one holds 39,000, 4 MB while it is searched."""

_FLUSH = 2_048
_STEP = 2_000
MOST_PAIRS = 200
MOST_HASHES = 100_000
"""Limits on pairs of shards that are read again, and on pages compared there; more are only
counted.
"""


class DuplicatePages:
    """Collects every page of a site, and finds those collected twice."""

    def __init__(self, flush: int = _FLUSH) -> None:
        """Open the temporary file; `flush` hashes of a part are kept in memory.

        Raises CheckError if the file cannot be opened.
        """
        self._flush = flush
        self._hashes = [array("q") for _ in range(PARTS)]
        self._shards = [array("i") for _ in range(PARTS)]
        self._spilt: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]
        self._names: list[Shard] = []
        with spooling():
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`

    def close(self) -> None:
        """Close the temporary file."""
        with contextlib.suppress(OSError):  # it flushes hashes that are not needed any more
            self._file.close()

    def note(self, shard: Shard, locs: Iterable[str]) -> None:
        """Add pages that `shard` lists; all pages of a shard must follow one another.

        Raises CheckError if there is no room.
        """
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
        """Yield each duplicate page, the number of surplus lines, and the shards that list it.

        Beyond MOST_PAIRS and MOST_HASHES, pages come without a loc and in one sum. Raises
        StoreError, CheckError.
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
        """Yield each repeated hash, with the shards of its first and of its repeated occurrence."""
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
        with spooling():
            self._spilt[part].append((self._file.tell(), len(hashes)))
            self._file.write(hashes.tobytes() + shards.tobytes())
        self._hashes[part], self._shards[part] = array("q"), array("i")

    def _read(self, part: int) -> Iterator[tuple[int, int]]:
        for at, count in self._spilt[part]:
            hashes, shards = array("q"), array("i")
            with spooling():
                self._file.seek(at)
                hashes.frombytes(self._file.read(count * hashes.itemsize))
                shards.frombytes(self._file.read(count * shards.itemsize))
            yield from zip(hashes, shards, strict=True)
        yield from zip(self._hashes[part], self._shards[part], strict=True)


def _listed(
    listing: PageScan, shards: Sequence[Shard], hashes: Container[int], step: Step
) -> Counter[str]:
    """Count how often these shards list each page with one of `hashes`, at one instant.

    A page that moved between shards during the check is therefore counted once.
    """
    found: Counter[str] = Counter()
    for blocks in listing.published(shards):
        for block in blocks:
            step(0)
            with contextlib.suppress(ShardError):
                locs = (line[:-1].decode() for line in fragments.lines(block.raw()))
                found.update(loc for loc in locs if hash(loc) in hashes)
    return found
