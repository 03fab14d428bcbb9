"""State of the reading of one site: how far its publishes are followed, and the state of engines.

One hash, `readback`: `cursor` is the id of the last revision that was followed, `<engine>` an
EngineReading, `<engine> sitemaps` what the engine said of the sitemaps; `summary` the delays by
section.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.notify.notification_queue import Breaker

MOST_SITEMAPS = 1_000
"""Sitemaps kept of one engine."""

MOST_SECTIONS = 500
"""Rows of delays, each of a section and an engine."""


class ReadSitemap(NamedTuple):
    """A sitemap as an engine knows it: `read_ms` is when it last read it (ms since 1970; 0: never,
    or not said), `errors` and `warnings` are numbers, None if the engine states none; `urls` is the
    number of URLs it found, `said` its own words.
    """

    url: str
    read_ms: int = 0
    errors: int | None = None
    warnings: int | None = None
    urls: int | None = None
    said: str = ""


class EngineReading(NamedTuple):
    """State of the reading of one engine; times in ms since 1970, 0: never.

    `breaker` is None while it answers.
    """

    read_ms: int = 0
    sitemaps_ms: int = 0
    breaker: Breaker | None = None


class ReadingState:
    """State of the reading of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._key = client, keys_of(site).readback

    def cursor(self) -> str:
        """Return the id of the last revision that was followed; empty at first."""
        with answering():
            stored: Any = self._client.hget(self._key, "cursor")
        return (stored or b"").decode(errors="replace")

    def move(self, cursor: str) -> None:
        """Store the id of the last revision that was followed."""
        with answering():
            self._client.hset(self._key, "cursor", cursor)

    def readings(self, engines: Sequence[str]) -> dict[str, EngineReading]:
        """Return the state of each of `engines`."""
        with answering():
            stored: Any = self._client.hmget(self._key, [*engines]) if engines else []
        return {name: _reading(of) for name, of in zip(engines, stored, strict=True)}

    def store(self, engine: str, reading: EngineReading) -> None:
        """Store the state of one engine."""
        with answering():
            self._client.hset(self._key, engine, json.dumps(reading))

    def sitemaps(self, engine: str) -> list[ReadSitemap]:
        """Return what `engine` last said of the sitemaps."""
        with answering():
            stored: Any = self._client.hget(self._key, f"{engine} sitemaps")
        try:
            return [ReadSitemap(*each) for each in json.loads(stored or b"[]")]
        except (ValueError, TypeError):
            return []

    def store_sitemaps(self, engine: str, found: Iterable[ReadSitemap]) -> None:
        """Store what `engine` said of the sitemaps, of MOST_SITEMAPS at most."""
        kept = [*found][:MOST_SITEMAPS]
        with answering():
            self._client.hset(self._key, f"{engine} sitemaps", json.dumps(kept))

    def summary(self) -> list[dict[str, Any]]:
        """Return the delays by section as stored last; empty before."""
        with answering():
            stored: Any = self._client.hget(self._key, "summary")
        try:
            return [dict(each) for each in json.loads(stored or b"[]")]
        except (ValueError, TypeError):
            return []

    def store_summary(self, sections: Sequence[Mapping[str, Any]]) -> None:
        """Store the delays by section, of MOST_SECTIONS at most."""
        with answering():
            self._client.hset(self._key, "summary", json.dumps([*sections][:MOST_SECTIONS]))

    def forget(self) -> None:
        """Delete all of it."""
        with answering():
            self._client.delete(self._key)


def _reading(stored: bytes | None) -> EngineReading:
    try:
        read, sitemaps, breaker = json.loads(stored or b"")
        held = None if breaker is None else Breaker.unpack(json.dumps(breaker).encode())
        return EngineReading(int(read), int(sitemaps), held)
    except (ValueError, TypeError):
        return EngineReading()
