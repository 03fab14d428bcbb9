"""Reconcile a site with its source, by ordinary events through the inbox.

No event is sent before the source was read to its end: repairs wait in a file. The version of every
repair is the start time of the run, so that later events win. An interrupted run is simply started
again: it finds the remaining differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

import redis

from shared.batches import batches
from shared.config.sites.site import Site
from shared.errors import ReconcileError, StoreError
from shared.events.event import Event
from shared.events.resync_scope import WHOLE, Scope
from shared.store.inbox.inbox import Inbox
from shared.store.operations.checks import CheckStore
from shared.store.operations.resync_requests import ReconcileLock, ResyncRequests
from worker.reconcile.diff_spool import EXTRA, MISSING, STALE, DiffSpool, summary
from worker.reconcile.event_mapping import Remark
from worker.reconcile.importer import BACKLOG
from worker.reconcile.source_diff import BATCH, DiffOutcome, SourceDiff
from worker.sources import Item


class Repairs(NamedTuple):
    """Outcome of a run: pages of the source, and events sent to add, change and delete pages.

    `kept` are pages that differ and no event repairs; `incomplete` says why nothing was deleted
    (empty: all could be), `extra` is the number of pages this leaves.
    """

    source: int
    listed: int
    added: int
    changed: int
    deleted: int
    kept: int
    extra: int
    incomplete: str

    def figures(self) -> dict[str, int | str]:
        """Return the figures to report."""
        always = {"source", "listed", "added", "changed", "deleted"}
        return {name: n for name, n in self._asdict().items() if n or name in always}

    @property
    def complete(self) -> bool:
        """True if every difference is repaired once the events are applied."""
        return not self.incomplete and not self.kept


class Reconciler:
    """Reconciles one site, one run at a time; `owner` names the worker in the reconcile lock."""

    def __init__(self, client: redis.Redis, name: str, site: Site, owner: str) -> None:
        self._client, self._name, self._site, self._owner = client, name, site, owner
        self._inbox = Inbox(client, name)
        self._resyncs, self._checks = ResyncRequests(client, name), CheckStore(client, name)

    def run(
        self, items: Iterable[Item], scope: Scope = WHOLE, *,
        on_remark: Callable[[Remark], None], drain: Callable[[], None],
        seen: Callable[[int], None] = lambda _: None, into: str | None = None, insist: bool = False,
    ) -> Repairs:  # fmt: skip
        """Make the pages in `scope` those of `items`, and close the resync requests this answers.

        `on_remark`, `seen` and `into` are those of SourceDiff; `drain` is called while too many
        events wait. Raises ReconcileError if another run holds the lock, or if the source has so
        few pages that it can hardly be the right one, unless you `insist` (RELIABILITY T32). Raises
        SourceError from `items` before anything is sent, and StoreError.
        """
        with self._resyncs.lock(self._owner) as lock, DiffSpool() as findings:
            asked = {s: when for s, when in self._resyncs.open().items() if scope.answers(s)}
            began = self._resyncs.begin_ms()
            comparison = SourceDiff(
                self._client, self._name, self._site, scope, findings, began, into
            )
            outcome = comparison.run(items, on_remark=on_remark, seen=seen)
            if scope.whole:
                self._checks.set_compared(summary(findings, began, outcome.incomplete))
            if not insist and not outcome.incomplete and not outcome.partial:
                self._refuse_shrinking(outcome)
            # The first import of an empty site: engines are not notified of all of it (U7).
            quiet = not outcome.listed_meant
            self._send(findings, lock, drain, deletes=not outcome.incomplete, quiet=quiet)
            repairs = _repairs(findings, outcome)
            if repairs.complete:
                self._resyncs.answered(asked)
                if scope.whole:
                    self._resyncs.completed(began)
                    self._checks.set_compared(summary(findings, began, repaired=True))
            return repairs

    def _refuse_shrinking(self, outcome: DiffOutcome) -> None:
        """Compare the source with the scope and with the site: it may be of one section."""
        least = 1 - Fraction(repr(self._site.shrink_share))
        if (
            outcome.source < least * outcome.listed
            and outcome.source_meant < least * outcome.listed_meant
        ):
            raise ReconcileError(
                f"the source has {outcome.source_meant} pages where {outcome.listed_meant} are "
                f"listed, fewer than {float(least):.0%} of them (shrink_share): nothing was "
                "changed. If the source is right, use --yes"
            )

    def _send(
        self,
        findings: DiffSpool,
        lock: ReconcileLock,
        drain: Callable[[], None],
        *,
        deletes: bool,
        quiet: bool,
    ) -> None:
        events = (each.event for each in findings if each.event and (deletes or each.what != EXTRA))
        for batch in batches(events, BATCH):
            lock.check()
            self._accept(batch, quiet=quiet)
            while self._inbox.waiting() > BACKLOG:
                drain()

    def _accept(self, events: list[Event], *, quiet: bool) -> None:
        accepted = self._inbox.accept(events, quiet=quiet)
        if accepted.status != "accepted":
            raise StoreError(f"the inbox takes no events: {accepted.status}")


def _repairs(findings: DiffSpool, outcome: DiffOutcome) -> Repairs:
    extra, kept = findings.count(EXTRA), findings.unrepaired()
    left = extra if outcome.incomplete else 0
    return Repairs(
        outcome.source_meant, outcome.listed_meant,
        findings.count(MISSING), findings.count(STALE) - kept, extra - left,
        kept, left, outcome.incomplete,
    )  # fmt: skip
