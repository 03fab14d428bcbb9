"""Reports of the processes about their configuration: the revision in force, and why a file is not.

One hash with a TTL; a process renews its field every few seconds.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import redis
from pydantic import BaseModel, ConfigDict, ValidationError

from shared.errors import StoreError
from shared.store.client import answering
from shared.store.keys import EVERYWHERE

KEY = EVERYWHERE + "configuration"
RENEW_S = 5.0
"""Seconds between two reports of a process."""
FRESH_S = 20.0
"""Seconds after which a process that does not renew its report counts as ended."""

_KEPT_S = 3600
_LONGEST = 300


def process_name() -> str:
    """Return the host and the number of this process, which name it among others of its kind."""
    return f"{socket.gethostname()}:{os.getpid()}"


class ConfigReport(BaseModel):
    """Report of one process about its configuration; times in seconds since 1970.

    `refused` holds the faults of the file that is not in force, `next_start` the changed fields
    that take effect at the next start.
    """

    model_config = ConfigDict(frozen=True)

    at: float
    revision: str
    refused: tuple[str, ...] = ()
    since: float = 0.0
    next_start: tuple[str, ...] = ()

    def renewed(self) -> bool:
        """Return True if its process still reports."""
        return time.time() - self.at < FRESH_S


class RefusedConfig(NamedTuple):
    """A configuration that processes refuse: their names, the faults, since when (s since 1970)."""

    processes: tuple[str, ...]
    faults: tuple[str, ...]
    since: float

    def plain(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "processes": list(self.processes), "faults": list(self.faults),
            "for_s": round(max(0.0, time.time() - self.since), 1),
        }  # fmt: skip


class ConfigReports:
    """The reports of all processes on one Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def report(self, process: str, report: ConfigReport) -> None:
        """Store the report of `process`. Raises StoreError."""
        short = tuple(fault[:_LONGEST] for fault in report.refused[:20])
        stored = report.model_copy(update={"refused": short}).model_dump_json()
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.hset(KEY, process, stored)
            pipe.expire(KEY, _KEPT_S)
            pipe.execute()

    def forget(self, *processes: str) -> None:
        """Delete the reports of processes that have ended. Raises StoreError."""
        if processes:
            with answering():
                self._client.hdel(KEY, *processes)

    def read(self) -> dict[str, ConfigReport]:
        """Return the reports of the processes that run, by name. Raises StoreError."""
        return {name: report for name, report in self._stored().items() if report.renewed()}

    def forget_ended(self) -> None:
        """Delete the reports that nobody renews. Raises StoreError."""
        self.forget(*(name for name, each in self._stored().items() if not each.renewed()))

    def _stored(self) -> dict[str, ConfigReport]:
        with answering():
            stored: Any = self._client.hgetall(KEY)
        found = {}
        for name, text in stored.items():
            try:
                found[name.decode(errors="replace")] = ConfigReport.model_validate_json(text)
            except ValidationError:
                continue  # of another version
        return found


def refused(reports: Mapping[str, ConfigReport]) -> RefusedConfig | None:
    """Return what processes refuse; None if all have the file in force."""
    found = {name: report for name, report in reports.items() if report.refused}
    if not found:
        return None
    faults = dict.fromkeys(fault for report in found.values() for fault in report.refused)
    since = min(report.since for report in found.values())
    return RefusedConfig(tuple(sorted(found)), tuple(faults), since)


def refusal_shown(client: redis.Redis) -> RefusedConfig | None:
    """Return what processes refuse, None also if Redis does not answer."""
    try:
        return refused(ConfigReports(client).read())
    except StoreError:
        return None
