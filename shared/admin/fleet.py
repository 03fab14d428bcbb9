"""Events, queues and dead letters of many sites together, each in one round trip."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import redis

from shared.store.keys import keys_of
from shared.store.operations.dead_letters import DeadLetter, letter_of
from shared.store.operations.event_log import LoggedEvent, logged
from shared.store.operations.queues import Pause, QueueDepth
from shared.store.operations.site_snapshot import SnapshotReader
from shared.store.round_trips import Reading, read
from shared.store.streams import newest

_EACH = 5
"""Entries of one site that are read for a page of all sites."""


class FleetEvents(NamedTuple):
    """Entries of the event logs, newest first, each with its site; `older` is the place of the next
    ones, empty at the end.
    """

    found: Sequence[tuple[str, LoggedEvent]]
    older: str


class FleetLetters(NamedTuple):
    """Dead letters, newest first, each with its site; `older` as that of FleetEvents."""

    found: Sequence[tuple[str, DeadLetter]]
    older: str


class FleetQueues(NamedTuple):
    """Waiting work of one site, and its paused queues."""

    site: str
    depth: QueueDepth
    paused: Mapping[str, Pause]


def latest_events(
    client: redis.Redis, sites: Sequence[str], most: int, before: str = ""
) -> FleetEvents:
    """Return the events of about `most` newest entries of `sites`, before the place `before`."""
    of = {key: site for site in sites for key in (keys_of(site).recent, keys_of(site).refused)}
    entries, older = newest(client, list(of), each=_EACH, most=most, before=before)
    found = [(of[key], past) for key, at, fields in entries for past in [*logged(at, fields)][::-1]]
    return FleetEvents(found, older)


def latest_letters(
    client: redis.Redis, sites: Sequence[str], most: int, before: str = ""
) -> FleetLetters:
    """Return about the `most` newest dead letters of all `sites`, before the id `before`."""
    of = {keys_of(site).dead: site for site in sites}
    entries, older = newest(client, list(of), each=_EACH * 2, most=most, before=before)
    return FleetLetters([(of[key], letter_of(at, fields)) for key, at, fields in entries], older)


def dead_counts(client: redis.Redis, sites: Sequence[str]) -> dict[str, int]:
    """Return the number of dead letters of those of `sites` that have any, the most first."""
    counts = read(client, _lengths([keys_of(site).dead for site in sites]))
    some = [(site, count) for site, count in zip(sites, counts, strict=True) if count]
    return dict(sorted(some, key=lambda each: -each[1]))


def queues(
    client: redis.Redis, snapshots: SnapshotReader, sites: Sequence[str]
) -> list[FleetQueues]:
    """Return the waiting work of all `sites`: what is paused or waits longest first."""
    looked = read(client, snapshots.reading(sites, time.time()))
    found = [
        FleetQueues(site, each.depth, each.paused) for site, each in zip(sites, looked, strict=True)
    ]

    def rank(each: FleetQueues) -> tuple[bool, float]:
        since = [ms for ms in (each.depth.oldest_ms, each.depth.files_since_ms) if ms is not None]
        return not each.paused, min(since, default=float("inf"))

    return sorted(found, key=rank)


def _lengths(keys: Sequence[str]) -> Reading[Sequence[int]]:
    return (yield [("XLEN", key) for key in keys])
