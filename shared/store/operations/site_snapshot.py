"""State of a site at a glance; of any number of sites in one round trip.

A reply of site_snapshot.lua is kept with what was made of it: nothing is made again of a site whose
reply is the same as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgpack

from shared.domain.page_record import Arrival
from shared.events.resync_scope import Scope
from shared.sitemap.shards import Shard
from shared.store.client import Command, script_call
from shared.store.counting.counters import (
    HABIT_WEEKS,
    AcceptedHours,
    WaitHistogram,
    accepted_of,
    totals_of,
)
from shared.store.keys import GROUP, keys_of
from shared.store.layouts.version import Layout
from shared.store.looks.summary import LookSummary, summary_of
from shared.store.notify.notification_queue import EngineState, engine_states
from shared.store.operations.checks import CheckReport, ComparisonSummary, comparison_of, report_of
from shared.store.operations.queues import Pause, QueueDepth, pauses_of
from shared.store.operations.recent_refusals import MINUTES, NOTES, RecentRefusals, refusals_of
from shared.store.operations.resync_requests import scopes_of
from shared.store.publishing.publish_batch import PublishedFile
from shared.store.publishing.publish_state import files_of
from shared.store.publishing.quarantine import QuarantineCause, causes_of
from shared.store.publishing.shrink_holds import ShrinkHold, holds_of
from shared.store.round_trips import Reading, pairs
from shared.store.targets.target_state import TargetRecord, records_of

SCRIPT = "operations/site_snapshot"
Part = Literal["nothing", "signs", "stats"]
"""What is read besides the state: what shared/admin/attention.py judges, or all counters."""

Totals = tuple[Mapping[str, int], WaitHistogram]


class SiteSnapshot(NamedTuple):
    """State of one site: events `accepted` ever, completed `publishes`, listed pages (`urls`), the
    begin of the last reconcile (ms since 1970; 0: none), dead letters; what is paused, quarantined,
    held, to be resynced, and published; the targets, of a site with several; the layout.

    Part `signs`: the last check and comparison, accepted events by the hour, refusals, engines,
    looks at the pages.
    Part `stats`: the counters.
    """

    depth: QueueDepth
    accepted: int
    publishes: int
    urls: int
    reconciled_ms: int
    dead: int
    paused: Mapping[str, Pause]
    quarantined: tuple[QuarantineCause | None, Mapping[Shard, QuarantineCause]]
    held: Mapping[Shard, ShrinkHold]
    resyncs: Mapping[Scope, int]
    targets: Mapping[str, TargetRecord]
    files: Mapping[Shard, PublishedFile]
    layout: Layout
    report: CheckReport | None = None
    compared: ComparisonSummary | None = None
    hours: AcceptedHours = AcceptedHours((), 0)
    refused: RecentRefusals = RecentRefusals()
    engines: Sequence[EngineState] = ()
    totals: Totals = ({}, WaitHistogram((), 0))
    looks: LookSummary | None = None


class _Known(NamedTuple):
    """A reply, what was made of it, and its marks, which the next call names."""

    reply: bytes
    marks: Sequence[bytes]
    snapshot: SiteSnapshot


_NOTHING = _Known(
    b"", (b"", b"", b""),
    SiteSnapshot(QueueDepth(0, 0, None, 0, None, 0), 0, 0, 0, 0, 0, {}, (None, {}), {}, {}, {}, {},
               Layout(None)),
)  # fmt: skip


class SnapshotReader:
    """Reader of these sites, each with its engines."""

    def __init__(self, engines: Mapping[str, Sequence[str]], part: Part) -> None:
        self._engines, self._part = engines, part
        self._known: dict[str, _Known] = {}

    def reading(self, names: Iterable[str], now_s: float) -> Reading[list[SiteSnapshot]]:
        """Return the Reading of the state of the sites `names` at `now_s` (s since 1970). The same
        object is returned for a site while nothing waits at it and nothing changes.
        """
        asked = [(name, self._known.get(name, _NOTHING)) for name in names]
        (seconds, micros), *replies = yield [
            ("TIME",), *(self._call(name, known.marks, now_s) for name, known in asked)
        ]  # fmt: skip
        now_ms, found = int(seconds) * 1000 + int(micros) // 1000, []
        for (name, before), reply in zip(asked, replies, strict=True):
            known = before
            if known.reply != reply:
                known = self._known[name] = self._made(name, before, reply, int(now_s // 3600))
            found.append(_at(known.snapshot, now_ms))
        return found

    def _call(self, name: str, marks: Sequence[bytes], now_s: float) -> Command:
        keys = keys_of(name)
        first = keys.prefix, GROUP, marks[0], self._part
        if self._part != "signs":
            return script_call(SCRIPT, [keys.inbox], *first)
        return script_call(
            SCRIPT, [keys.inbox], *first, now_s, MINUTES, NOTES, HABIT_WEEKS, *marks[1:],
            *self._engines[name],
        )  # fmt: skip

    def _made(self, name: str, known: _Known, reply: bytes, hour: int) -> _Known:
        """Make the snapshot from a reply, and from `known` what the reply leaves out."""
        inbox, counters, files, exceptions, *more = msgpack.unpackb(reply, raw=True)
        before, state = known.snapshot, _state(inbox, counters, exceptions)
        same = files[0] and files[0] == known.marks[0]
        state = state._replace(files=before.files if same else _files(files))
        if self._part != "signs":
            totals = totals_of(pairs(more[0])) if more else before.totals
            return _Known(reply, (files[0],), state._replace(totals=totals))
        checks, hours, refused, dues, breakers = more
        report, compared, accepted = before.report, before.compared, before.hours
        looks = before.looks
        if len(checks) > 1:
            report, compared = report_of(checks[1]), comparison_of(checks[2])
            looks = summary_of(checks[3])
        if len(hours) > 1:
            accepted = accepted_of(hours[1:], inbox[2], hour)
        state = state._replace(
            report=report, compared=compared, looks=looks, hours=accepted,
            refused=refusals_of(refused[0], pairs(refused[1])) if refused else RecentRefusals(),
            engines=engine_states(self._engines[name], dues, pairs(breakers)),
        )  # fmt: skip
        return _Known(reply, (files[0], checks[0], hours[0]), state)


def _state(
    inbox: Sequence[Any], counters: Sequence[Any], exceptions: Sequence[Any]
) -> SiteSnapshot:
    """Return the state without files and further parts, from parts of the reply."""
    events, accepted, _, first, delivered = inbox
    publishes, urls, reconciled = (int(count or 0) for count in counters[:3])
    form, back = counters[3:]
    dirty, since, dead, resyncs, paused, quarantine, held, targets = exceptions or (
        0, b"", 0, *[()] * 5,
    )  # fmt: skip
    oldest_ms = Arrival.of(first.decode()).ms if first else None
    depth = QueueDepth(
        events, delivered, oldest_ms, dirty, int(float(since)) if since else None, 0
    )  # fmt: skip
    return SiteSnapshot(
        depth, accepted, publishes, urls, reconciled, dead,
        pauses_of(pairs(paused)), causes_of(pairs(quarantine)), holds_of(pairs(held)),
        scopes_of(pairs(resyncs).items()), records_of(pairs(targets)), {},
        Layout.read(form or None, back or None, known=publishes > 0),
    )  # fmt: skip


def _files(reply: Sequence[Any]) -> Mapping[Shard, PublishedFile]:
    _, *sections = reply
    return files_of({name: pairs(stored) for name, stored in pairs(sections).items()})


def _at(snapshot: SiteSnapshot, now_ms: int) -> SiteSnapshot:
    """Return `snapshot` with the time for the ages of what waits."""
    depth = snapshot.depth
    late = any(each.behind_ms or each.failing_ms for each in snapshot.targets.values())
    if depth.events or depth.files or snapshot.resyncs or late:
        return snapshot._replace(depth=depth._replace(now_ms=now_ms))
    return snapshot
