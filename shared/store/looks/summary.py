"""Summary of the looks at a site's pages: what alarms, the console and `sitemapd check` show."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

import redis

from shared.config.sites.pages import LookSettings
from shared.store.client import answering
from shared.store.keys import keys_of

SAMPLE_LEAST = 50
"""Looks of one round from which on their share of broken pages counts; before, those of the round
before count as well.
"""


class LookSummary(NamedTuple):
    """Summary at `at_ms` (ms since 1970): pages `looked` at in the sample and `failed` among them,
    listed pages (`urls`), and the most that were listed when one of the last two rounds began
    (`before`); numbers of `broken` and `unlisted` pages; looks `spent` today. `complete` if the
    sample is a whole round.
    """

    at_ms: int
    looked: int
    failed: int
    urls: int
    before: int
    broken: int
    unlisted: int
    spent: int
    complete: bool

    @property
    def share(self) -> float:
        """Per cent of the sample that are broken."""
        return 100 * self.failed / self.looked if self.looked else 0.0

    @property
    def fewer(self) -> float:
        """Per cent of the pages by which there are fewer than before."""
        return max(0.0, 100 * (1 - self.urls / self.before)) if self.before else 0.0

    def alarms(self, settings: LookSettings) -> list[str]:
        """Return the alarms, each in a sentence."""
        found = []
        if (self.complete or self.looked >= SAMPLE_LEAST) and self.share > settings.alarm_broken:
            found.append(
                f"{_short(self.share)} % of the pages in a sample are broken: {self.failed:,} of "
                f"{self.looked:,}."
            )
        if self.fewer > settings.alarm_fewer:
            found.append(
                f"{self.urls:,} pages are listed, {_short(self.fewer)} % fewer than the "
                f"{self.before:,} of the rounds before."
            )
        return found


class LookSummaries:
    """Summary of one site, stored beside its checks, which everything that shows it reads."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._key = client, keys_of(site).checks

    def set(self, summary: LookSummary) -> None:
        """Store the summary. Raises StoreError."""
        with answering():
            self._client.hset(self._key, "looks", json.dumps(summary))

    def get(self) -> LookSummary | None:
        """Return the stored summary; None if there is none. Raises StoreError."""
        with answering():
            stored: Any = self._client.hget(self._key, "looks")
        return summary_of(stored)


def _short(per_cent: float) -> str:
    return f"{per_cent:.0f}" if per_cent >= 10 else f"{per_cent:.2g}"


@lru_cache(1_024)
def summary_of(stored: bytes | None) -> LookSummary | None:
    """Return a stored summary."""
    return LookSummary(*json.loads(stored)) if stored else None
