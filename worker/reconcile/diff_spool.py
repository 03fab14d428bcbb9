"""Spool of the differences a comparison finds, on disk: memory does not grow with the site."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from shared.events.event import Event
from shared.store.operations.checks import SAMPLES, ComparisonSummary, FindingSample
from worker.reconcile.scratch_database import ScratchDatabase, page_key

_SCHEMA = """
CREATE TABLE source (page INTEGER PRIMARY KEY, meant INTEGER NOT NULL);
CREATE TABLE found (page INTEGER PRIMARY KEY, what TEXT, loc TEXT, why TEXT, event BLOB);
CREATE INDEX by_kind ON found (what);
"""

MISSING, STALE, EXTRA = "missing", "stale", "extra"


class SourceDifference(NamedTuple):
    """One page that is `missing` here, `extra` here, or `stale`: listed with other content.

    `event` would repair it; None if only its sender can.
    """

    what: str
    loc: str
    why: str
    event: Event | None


class DiffCounts(NamedTuple):
    """Number of pages the source names, and of those in the scope."""

    pages: int
    meant: int


class DiffSpool(ScratchDatabase):
    """The pages that a source names, and the differences found here."""

    def __init__(self) -> None:
        super().__init__(_SCHEMA)
        self._found = False

    def named(self, locs: Iterable[str], *, meant: bool = False) -> None:
        """Add pages that the source names, in an entry or in one that it cannot give."""
        if rows := [(page_key(loc), int(meant)) for loc in locs]:
            self._write(
                "INSERT INTO source VALUES (?, ?)"
                " ON CONFLICT (page) DO UPDATE SET meant = max(meant, excluded.meant)",
                *rows,
            )

    def unnamed(self, locs: Sequence[str]) -> list[str]:
        """Return those of `locs` that the source does not name."""
        keys = {page_key(loc): loc for loc in locs}
        marks = ",".join("?" * len(keys))
        query = f"SELECT page FROM source WHERE page IN ({marks})"  # noqa: S608  # nosec B608
        known = {page for (page,) in self._read(query, list(keys))}
        return [loc for key, loc in keys.items() if key not in known]

    def found(self, finding: SourceDifference) -> None:
        """Store `finding`, instead of an earlier one about the same page."""
        self._found = True
        event = finding.event.dump() if finding.event else None
        row = (page_key(finding.loc), finding.what, finding.loc, finding.why, event)
        self._write("INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?, ?)", row)

    def right(self, locs: Iterable[str]) -> None:
        """Remove the findings of pages that agree with their last statement."""
        if self._found and (keys := [(page_key(loc),) for loc in locs]):
            self._write("DELETE FROM found WHERE page = ?", *keys)

    def source(self) -> DiffCounts:
        """Return the number of pages the source names."""
        query = "SELECT count(*), coalesce(sum(meant), 0) FROM source"
        return DiffCounts(*next(self._read(query)))

    def count(self, what: str) -> int:
        """Return the number of pages that are `what`."""
        query = "SELECT count(*) FROM found WHERE what = ?"
        return int(next(self._read(query, (what,)))[0])

    def unrepaired(self) -> int:
        """Return the number of differences that no event repairs."""
        query = "SELECT count(*) FROM found WHERE event IS NULL"
        return int(next(self._read(query))[0])

    def __iter__(self) -> Generator[SourceDifference, None, None]:
        """Yield every difference: missing, stale, extra."""
        for what in (MISSING, STALE, EXTRA):
            yield from self.of(what)

    def of(self, what: str) -> Iterator[SourceDifference]:
        """Yield every page that is `what`."""
        query = "SELECT loc, why, event FROM found WHERE what = ? ORDER BY page"
        for loc, why, event in self._read(query, (what,)):
            yield SourceDifference(what, loc, why, Event.load(event) if event else None)


def summary(
    findings: DiffSpool, began_ms: int, incomplete: str = "", *, repaired: bool = False
) -> ComparisonSummary:
    """Return the summary of a comparison of the whole site, for later checks.

    `began_ms` in milliseconds since 1970.
    """
    samples = {
        what: [FindingSample(found.loc, found.why) for found in islice(findings.of(what), SAMPLES)]
        for what in (MISSING, STALE, EXTRA)
    }
    missing, stale, extra = map(findings.count, (MISSING, STALE, EXTRA))
    return ComparisonSummary(began_ms, missing, stale, extra, samples, incomplete, repaired)
