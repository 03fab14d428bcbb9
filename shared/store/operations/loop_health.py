"""Health of the background loops of workers, as each worker last reported it.

One key per worker, with a TTL: a report that is not renewed expires.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import redis
from pydantic import BaseModel, ConfigDict, ValidationError

from shared.store.client import answering
from shared.store.keys import EVERYWHERE
from shared.store.operations.worker_registry import NAMES
from shared.store.round_trips import Reading, read

HEALTH = EVERYWHERE + "loops:"
"""Prefix of the key of each worker: a LoopReport."""

HEALTH_S = 30
"""Lifetime of a report (s); a worker renews it every 5 s."""

LOOPS = (
    "heartbeat", "sweep", "monitor", "tidy", "refresh", "checks", "reconcile", "notify", "websub",
    "configuration", "alerts", "follow", "readback", "looks",
)  # fmt: skip
"""Names of all loops of a worker."""

MOST = 200
"""Maximum number of troubles in one report; more affected sites than that have one cause."""

_LONGEST = 300


class LoopTrouble(BaseModel):
    """One loop that fails or hangs at one `site` (empty: at no single site).

    `part` of the site's work, such as an engine; `since` in seconds since 1970; `times` is the
    number of failures in a row.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    loop: str
    site: str
    part: str
    state: Literal["failing", "hanging"]
    since: float
    times: int
    reason: str


class LoopReport(BaseModel):
    """Loops of one worker: when each last succeeded (s since 1970), and the troubles."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    succeeded: Mapping[str, float]
    troubles: tuple[LoopTrouble, ...] = ()


class ReportedLoops(NamedTuple):
    """One trouble, and the worker that reported it."""

    worker: str
    trouble: LoopTrouble

    def plain(self) -> dict[str, Any]:
        """Return JSON values, also for tables; without the site."""
        told = self.trouble
        return {
            "loop": told.loop, "part": told.part, "worker": self.worker, "state": told.state,
            "for_s": round(max(0.0, time.time() - told.since), 1), "times": told.times,
            "reason": told.reason,
        }  # fmt: skip

    def __str__(self) -> str:
        told = self.trouble
        name = f"{told.loop} ({told.part})" if told.part else told.loop
        times = f", {told.times} times" if told.times > 1 else ""
        return f"{name} of {self.worker} is {told.state}{times}: {told.reason}"


class LoopHealth:
    """Loop reports of all workers on one Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def report(self, worker: str, report: LoopReport) -> None:
        """Store the report of `worker`. Raises StoreError."""
        kept = [told.model_copy(update={"reason": _short(told.reason)}) for told in report.troubles]
        stored = report.model_copy(update={"troubles": tuple(kept[:MOST])}).model_dump_json()
        with answering():
            self._client.set(HEALTH + worker, stored, ex=HEALTH_S)

    def forget(self, worker: str) -> None:
        """Delete the report of `worker`, which has ended."""
        with answering():
            self._client.delete(HEALTH + worker)

    def reports(self) -> dict[str, LoopReport]:
        """Return the last report of each worker, by name. Raises StoreError."""
        return read(self._client, self.reports_reading())

    def reports_reading(self) -> Reading[dict[str, LoopReport]]:
        """Return the Reading of `reports`."""
        (names,) = yield (("ZRANGE", NAMES, 0, -1),)
        keys = [HEALTH.encode() + name for name in names]
        (stored,) = (yield (("MGET", *keys),)) if keys else ([],)
        found = {}
        for name, text in zip(names, stored, strict=True):
            if text is not None and (report := _read(text)) is not None:
                found[name.decode(errors="replace")] = report
        return found

    def of_site(self, site: str) -> list[ReportedLoops]:
        """Return the troubles of `site`, including those of whole workers. Raises StoreError."""
        return [each for each in troubles(self.reports()) if each.trouble.site in {"", site}]


def troubles(reports: Mapping[str, LoopReport]) -> list[ReportedLoops]:
    """Return all troubles of these reports, oldest first."""
    found = [ReportedLoops(name, told) for name, of in reports.items() for told in of.troubles]
    return sorted(found, key=lambda each: each.trouble.since)


def of_sites(reports: Mapping[str, LoopReport], statuses: Iterable[dict[str, Any]]) -> None:
    """Enter in each status (shared/admin/site_status.py) the troubles of its site."""
    told = troubles(reports)
    for status in statuses:
        mine = (each for each in told if each.trouble.site in {"", status["site"]})
        status["failing"] = [each.plain() for each in mine]


def failing(found: Iterable[ReportedLoops], loops: Sequence[str] = LOOPS) -> dict[str, bool]:
    """Return for each of `loops` whether it is in trouble."""
    names = {each.trouble.loop for each in found}
    return {loop: loop in names for loop in loops}


def _read(stored: bytes) -> LoopReport | None:
    try:
        return LoopReport.model_validate_json(stored)
    except ValidationError:
        return None  # of another version, or not written by sitemapd


def _short(text: str) -> str:
    shown = "".join(char if char.isprintable() else "\ufffd" for char in text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."
