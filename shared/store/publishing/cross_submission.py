"""Sites that one index of several hosts lists, and their index lines (PROTOCOL R11).

One hash, `hosts`, of the site with the index: a HostRecord for each other site, and in the empty
field the publishes that the file had when it was last asked for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.publishing.publish_work import index_lines
from shared.store.round_trips import Reading, gathered, pairs, read

_ASKED = ""
_BATCH = 100
"""Sites whose lines are read at once."""


class HostRecord(NamedTuple):
    """Record of one site: `named` if the robots.txt of its host named the index at `seen_ms` (ms
    since 1970). `index_shards` is the number of lines of its own index files, `asked` a checksum of
    the settings by which it was asked.
    """

    named: bool
    seen_ms: int
    index_shards: int
    asked: int


class CrossSubmission:
    """The sites that the index of the site `name` lists."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        self._client, self._key, self._name = client, keys_of(name).hosts, name

    def records(self) -> dict[str, HostRecord]:
        """Return the record of each site whose robots.txt was read."""
        return self.read()[0]

    def read(self) -> tuple[dict[str, HostRecord], str]:
        """Return `records`, and what `ask` stored last (empty before) in the same round trip."""
        with answering():
            stored: Any = self._client.hgetall(self._key)
        asked = stored.pop(_ASKED.encode(), b"").decode(errors="replace")
        found = {name.decode(): _record(of) for name, of in stored.items()}
        return {name: record for name, record in found.items() if record}, asked

    def store(self, site: str, record: HostRecord) -> None:
        """Store the record of one site."""
        with answering():
            self._client.hset(self._key, site, json.dumps(record))

    def drop(self, sites: Iterable[str]) -> None:
        """Delete the records of these sites."""
        if names := [*sites]:
            with answering():
                self._client.hdel(self._key, *names)

    def publishes(self, sites: Collection[str]) -> str:
        """Return these sites with the number of publishes of each: another text, other lines."""
        counts = read(self._client, gathered([_publishes(site) for site in sites]))
        return " ".join(f"{site}:{count}" for site, count in zip(sites, counts, strict=True))

    def ask(self, publishes: str) -> None:
        """Store the publishes that the file is to have."""
        with answering():
            self._client.hset(self._key, _ASKED, publishes)

    def lines(
        self, pages: Mapping[str, int], later: Mapping[str, Mapping[int, bytes]]
    ) -> list[bytes]:
        """Return the index lines of these sites, in order; the value of each in `pages` is the
        number of lines of one index file. `later` are lines that are stored later, by ordinal;
        an empty one removes the line.
        """
        names, found = [*pages], list[bytes]()
        for start in range(0, len(names), _BATCH):
            some = names[start : start + _BATCH]
            stored = read(self._client, gathered([_lines(n, pages[n]) for n in some]))
            for name, lines in zip(some, stored, strict=True):
                now = {**lines, **later.get(name, {})}
                found += [now[ordinal] for ordinal in sorted(now)]
        return [line for line in found if line]

    def forget(self) -> None:
        """Delete all records."""
        with answering():
            self._client.delete(self._key)


def _record(stored: bytes) -> HostRecord | None:
    try:
        named, seen_ms, index_shards, asked = json.loads(stored)
        return HostRecord(bool(named), int(seen_ms), max(1, int(index_shards)), int(asked))
    except (ValueError, TypeError):
        return None


def _publishes(site: str) -> Reading[int]:
    (stored,) = yield (("HGET", keys_of(site).counters, "publishes"),)
    return int(stored or 0)


def _lines(site: str, per_page: int) -> Reading[dict[int, bytes]]:
    keys = keys_of(site)
    (shards,) = yield (("HGET", keys.counters, "shards"),)
    pages: Sequence[Any] = yield [
        ("HGETALL", keys.index(page)) for page in range(-(-int(shards or 0) // per_page))
    ]
    found = dict[int, bytes]()
    for stored in pages:
        found |= index_lines(pairs(stored).items())
    return found
