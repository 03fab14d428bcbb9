"""What was sent, what was answered, and what the files must therefore say."""

from __future__ import annotations

import calendar
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

EPOCH = 1_700_000_000
"""The version is told by the lastmod: so many seconds after this."""


class Sent(NamedTuple):
    """One event: a page, its version and whether it says that the page is gone.

    `group` and `lang` are its translation group, `ident` the sender's id of the page; empty: none.
    `news_until` and `video_until` say when (s since 1970) it is news no more, and its video over;
    0: it is no news, has no video.
    """

    loc: str
    version: int
    gone: bool
    group: str = ""
    lang: str = ""
    ident: str = ""
    news_until: int = 0
    video_until: int = 0


def lastmod_of(version: int) -> str:
    """The lastmod by which a version is recognised in a file."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH + version))


def version_of(lastmod: str) -> int:
    """The version that a lastmod tells."""
    return calendar.timegm(time.strptime(lastmod, "%Y-%m-%dT%H:%M:%SZ")) - EPOCH


class Book(NamedTuple):
    """What a ledger knew at one moment."""

    acked: dict[str, Sent]
    unknown: dict[str, dict[int, Sent]]


class Ledger:
    """Of each page: the newest acknowledged event, and newer ones whose fate nobody knows.

    Outcomes (RELIABILITY 0, finding 4): acked; refused, which is known to have left nothing; and
    unknown: no answer, or one that does not exclude that the event was stored.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.refusals: Counter[str] = Counter()
        """Events refused, by status and code of the answer."""
        self._lock = threading.Lock()
        self._version = 0
        self._acked: dict[str, Sent] = {}
        self._unknown: dict[str, dict[int, Sent]] = {}

    def next_version(self) -> int:
        """A version above all so far."""
        with self._lock:
            self._version += 1
            return self._version

    def note(self, events: list[Sent], outcome: str, status: int = 0, code: str = "") -> None:
        """Enter what became of a delivery; `code` is that of the problem it was answered with."""
        with self._lock:
            self.counts[outcome] += len(events)
            if status:
                self.statuses[status] += 1
            if outcome == "refused":
                self.refusals[f"{status} {code}" if status else "no listener"] += len(events)
            for sent in events:
                if outcome == "acked":
                    known = self._acked.get(sent.loc)
                    if known is None or known.version < sent.version:
                        self._acked[sent.loc] = sent
                elif outcome == "unknown":
                    self._unknown.setdefault(sent.loc, {})[sent.version] = sent

    @property
    def acked(self) -> int:
        """How many events were acknowledged so far."""
        return self.counts["acked"]

    def book(self) -> Book:
        """All that is known now."""
        with self._lock:
            unknown = {loc: dict(events) for loc, events in self._unknown.items()}
            return Book(dict(self._acked), unknown)

    def put_back(self, book: Book) -> None:
        """Forget what was entered since `book`: the state was set back to then."""
        with self._lock:
            self._acked, self._unknown = book

    def told(self, published: Mapping[str, str | None]) -> dict[str, Sent]:
        """The events that `published`, lastmods by loc, shows; without those nobody sent."""
        acked, unknown = self.book()
        found = {}
        for loc, lastmod in published.items():
            version = version_of(lastmod) if lastmod else 0
            newest = acked.get(loc)
            sent = newest if newest and newest.version == version else None
            sent = sent or unknown.get(loc, {}).get(version)
            if sent:
                found[loc] = sent
        return found

    def lost(self, published: Mapping[str, str | None]) -> list[str]:
        """Pages that the files tell otherwise than the newest acknowledged event or an unknown,
        newer one; and pages that nobody ever sent.
        """
        acked, unknown = self.book()
        wrong = []
        for loc in acked.keys() | unknown.keys() | published.keys():
            shown = published.get(loc)
            seen = None if shown is None else version_of(shown)
            newest = acked.get(loc)
            least = newest.version if newest else 0
            may = [newest] if newest else [Sent(loc, 0, gone=True)]
            may += [sent for sent in unknown.get(loc, {}).values() if sent.version > least]
            if seen not in {None if sent.gone else sent.version for sent in may}:
                wrong.append(f"{loc}: acknowledged {newest}, published version {seen}")
        return sorted(wrong)
