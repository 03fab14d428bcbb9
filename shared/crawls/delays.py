"""Delays from each publish to its first fetch by each engine, gathered from a log and reported."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from shared.clock import percentile
from shared.crawls.log_lines import LoggedRequest
from shared.sitemap import w3c_dates

INDEX, SHARD, PAGE, ROBOTS, FEED = "index", "shards", "pages", "robots.txt", "feeds"
KINDS = (INDEX, SHARD, PAGE, ROBOTS, FEED)

BOUNDS_S = (60, 600, 3_600, 21_600, 86_400, 259_200, 604_800)
"""Upper bounds (s) of the histogram's columns: 1 and 10 minutes, 1 and 6 hours, 1, 3 and 7 days;
one more column has the rest.
"""

FETCHED = frozenset({200, 304})
_NEVER = 1 << 62
_INDEX_NAME = re.compile(r"sitemap(?:-[0-9]+)?\.xml")
_FEEDS = frozenset({"atom.xml", "rss.xml"})


class PublishedAt(Protocol):
    """Times of publishes (ms since 1970), in any order."""

    def files(self) -> Iterable[tuple[str, int]]:
        """The URL of each file and the time at which it was replaced."""

    def changes(self) -> Iterable[tuple[str, int]]:
        """Each added or changed page, and the time at which the file that lists it was replaced."""


class Period(NamedTuple):
    """Period of the publishes that count: `first_ms` to `last_ms` (since 1970), both included."""

    first_ms: int
    last_ms: int


class _Watched:
    """One URL: the times of its publishes and each engine's first fetch after each (in ms)."""

    __slots__ = ("first", "kind", "latest", "times", "url")

    def __init__(self, url: str, kind: str, times: list[int]) -> None:
        self.url, self.kind, self.times = url, kind, times
        self.first: dict[str, list[int]] = {}
        self.latest: dict[str, int] = {}

    def take(self, engine: str, at_ms: int) -> None:
        self.latest[engine] = max(at_ms, self.latest.get(engine, 0))
        # Most logs have whole seconds, rounded down: a fetch within the second of the publish may
        # have been before it, and counts as before.
        at = bisect_left(self.times, at_ms) - 1
        if at >= 0:
            first = self.first.setdefault(engine, [_NEVER] * len(self.times))
            first[at] = min(first[at], at_ms)

    def delays(self, engine: str, period: Period) -> Iterator[int]:
        """The delay (ms) of each publish that was fetched.

        A file's next publish ends the wait for the previous one: later fetches read another file.
        A page's does not.
        """
        first = self.first.get(engine, [])
        if self.kind == PAGE:
            first = [*accumulate(reversed(first), min)][::-1]
        for published, fetched in zip(self.times, first, strict=False):
            if period.first_ms <= published <= period.last_ms and fetched != _NEVER:
                yield fetched - published


class CrawlDelays:
    """Collector of fetches, in any order; it holds publishes and first fetches, not the log."""

    def __init__(
        self, base: str, published: PublishedAt, listed: Iterable[str] = (), since_ms: int = 0
    ) -> None:
        """Prepare for the site at `base`; `listed` are URLs of files whose last fetch is reported
        even if they were not published lately. Fetches before `since_ms` (since 1970) are skipped.
        """
        scheme, _, rest = base.partition("://")
        host = rest.partition("/")[0]
        self._origin, self._host, self._since_ms = f"{scheme}://{host}", _bare(host), since_ms
        self._watched: dict[str, _Watched] = {}
        self._of_kind: dict[str, list[_Watched]] = {kind: [] for kind in KINDS}
        self._requests: Counter[str] = Counter()
        self._fetches: Counter[tuple[str, str]] = Counter()
        self.other_hosts = 0
        times: dict[str, list[int]] = {url: [] for url in (*listed, f"{self._origin}/robots.txt")}
        for url, at_ms in published.files():
            times.setdefault(url, []).append(at_ms)
        for url, found in times.items():
            self._watch(url, kind_of(url), found)
        pages: dict[str, list[int]] = {}
        for url, at_ms in published.changes():
            pages.setdefault(url, []).append(at_ms)
        for url, found in pages.items():
            if url not in times:
                self._watch(url, PAGE, found)

    def _watch(self, url: str, kind: str, times: list[int]) -> None:
        if url.startswith(self._origin + "/"):
            watched = _Watched(url, kind, sorted(set(times)))
            self._watched[url.removeprefix(self._origin)] = watched
            self._of_kind[kind].append(watched)

    def fetched(self, engine: str, request: LoggedRequest) -> str | None:
        """The kind of the published URL that `request` fetched; None for any other."""
        if request.host and _bare(request.host) != self._host:
            self.other_hosts += 1
            return None
        if request.at_ms < self._since_ms:
            return None
        self._requests[engine] += 1
        if request.status not in FETCHED or request.method != "GET":
            return None
        found = self._watched.get(_canonical(request.target))
        return found.kind if found else None

    def take(self, engine: str, request: LoggedRequest) -> None:
        """Count a fetch for which `fetched` returned a kind."""
        found = self._watched[_canonical(request.target)]
        found.take(engine, request.at_ms)
        self._fetches[engine, found.kind] += 1

    def outside(self, period: Period) -> tuple[int, int]:
        """The numbers of publishes before `period` and after it."""
        times = [at_ms for watched in self._watched.values() for at_ms in watched.times]
        before = sum(at_ms < period.first_ms for at_ms in times)
        return before, sum(at_ms > period.last_ms for at_ms in times)

    def first_fetches(self) -> Iterator[tuple[str, int, dict[str, int]]]:
        """Each page that was fetched after its last publish: that publish, and the first fetch of
        each engine (ms since 1970).
        """
        for page in self._of_kind[PAGE]:
            last = {name: first[-1] for name, first in page.first.items() if first[-1] != _NEVER}
            if last:
                yield page.url, page.times[-1], last

    def engines(self) -> list[str]:
        """The names of the engines with requests, most requests first."""
        return [name for name, _ in self._requests.most_common()]

    def report(self, engine: str, period: Period) -> dict[str, Any]:
        """The report on one engine, as JSON; delays in seconds."""
        return {
            "engine": engine,
            "requests": self._requests[engine],
            "kinds": [*self._kinds(engine, period)],
            "shards": [*self._shards(engine, period)],
        }

    def _kinds(self, engine: str, period: Period) -> Iterator[dict[str, Any]]:
        for kind, watched in self._of_kind.items():
            told = _told(watched, engine, period)
            fetches = self._fetches[engine, kind]
            if told["published"] or fetches:
                yield {"kind": kind, "fetches": fetches, **told}

    def _shards(self, engine: str, period: Period) -> Iterator[dict[str, Any]]:
        for each in sorted(self._of_kind[SHARD], key=lambda each: each.url):
            told = _told([each], engine, period)
            del told["histogram"]
            if told["published"] or told["latest"]:
                yield {"file": each.url.rpartition("/")[2], **told}


def kind_of(url: str) -> str:
    """The kind of a published file, by its name."""
    name = url.rpartition("/")[2]
    if name == "robots.txt":
        return ROBOTS
    if name in _FEEDS:
        return FEED
    return INDEX if _INDEX_NAME.fullmatch(name) else SHARD


def spoken(seconds: float | None) -> str:
    """A delay in readable form; a dash for None."""
    if seconds is None:
        return "-"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _told(watched: Sequence[_Watched], engine: str, period: Period) -> dict[str, Any]:
    """The figures of these URLs; percentiles count only the publishes that were fetched."""
    delays = sorted(delay for each in watched for delay in each.delays(engine, period))
    latest = max((each.latest.get(engine, 0) for each in watched), default=0)
    count = sum(
        period.first_ms <= at_ms <= period.last_ms for each in watched for at_ms in each.times
    )
    return {
        "published": count,
        "fetched": len(delays),
        "p50_s": percentile(delays, 0.5) / 1000 if delays else None,
        "p95_s": percentile(delays, 0.95) / 1000 if delays else None,
        "latest": w3c_dates.from_epoch_s(latest // 1000) if latest else None,
        "histogram": _histogram(delays),
    }


def _histogram(delays: Iterable[int]) -> list[int]:
    counts = [0] * (len(BOUNDS_S) + 1)
    for delay in delays:
        counts[bisect_left(BOUNDS_S, delay / 1000)] += 1
    return counts


def _canonical(target: str) -> str:
    """A target with escapes in upper case: crawlers fetch URLs as listed, but some change these."""
    if "%" not in target:
        return target
    return re.sub("%[0-9a-fA-F]{2}", lambda escape: escape[0].upper(), target)


def _bare(host: str) -> str:
    """A host without port and `www.`: logs often have the one configured name of a server."""
    return re.sub(r":[0-9]*$", "", host.lower()).removeprefix("www.")
