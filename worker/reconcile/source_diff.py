"""Comparison of a site's pages with its source, by deciding the events that the source implies.

The source is read to its end, and all its statements of one page are united. Pages that are listed
as stated are found by their records. Per batch of the others, `decide` computes the effect of an
upsert of each, without applying it: `added` means missing here, any other change stale. Then every
listed page is looked up among the pages of the source. A page that an event changed after the
comparison began counts as right; nothing is written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import redis

from shared.batches import batches
from shared.config.sites.site import Site
from shared.domain.batch_state import BatchState, Policy
from shared.domain.decide import Decision, decide, include
from shared.domain.decide_batch import with_sections
from shared.domain.page_record import Arrival, PageRecord, subjects
from shared.domain.routing import family_of
from shared.errors import UrlError
from shared.events.event import Event
from shared.events.plain_page import PlainPage
from shared.events.resync_scope import Scope
from shared.sitemap import urls
from shared.store.pages.page_repository import PageRepository
from shared.store.pages.page_scan import PageScan
from worker.reconcile.diff_spool import EXTRA, MISSING, STALE, DiffSpool, SourceDifference
from worker.reconcile.equal_pages import EqualPages
from worker.reconcile.event_mapping import EventMapper, Remark
from worker.reconcile.kept_members import KeptMembers
from worker.reconcile.statement_spool import StatedPage, StatementSpool
from worker.sources import PARTIAL, Item, Note, RecordRefusal, SourceRecord

BATCH = 500
DECIDED_AT_ONCE = 250
"""Pages that differ need most of the memory of a comparison: some 4 kB each."""

_IN_GROUP = "differs, but only its sender knows its translation group"


class Stated(NamedTuple):
    """One page as the source states it; `silent` as in a SourceRecord."""

    event: Event
    silent: frozenset[str]


class DiffVerdict(NamedTuple):
    """The effect of an `event` on a page that was `before`, in these section families.

    `leaves` is another page that it would remove by taking over its id (empty: none).
    """

    event: Event
    decision: Decision
    before: PageRecord | None
    families: frozenset[str]
    leaves: str


class DiffOutcome(NamedTuple):
    """Numbers of compared pages of the source and of listed pages, all and those in the scope.

    `incomplete` says why the source may have more pages than it returned (empty: it has not);
    `partial` is True if it never names all.
    """

    source: int
    source_meant: int
    listed: int
    listed_meant: int
    incomplete: str
    partial: bool = False


class SourceDiff:
    """Comparison of the pages of one site in `scope`; differences go to `findings`."""

    def __init__(
        self, client: redis.Redis, name: str, site: Site, scope: Scope, findings: DiffSpool,
        began_ms: int, into: str | None = None,
    ) -> None:  # fmt: skip
        """Prepare the comparison, begun at `began_ms` (ms since 1970, the store's clock).

        That is the version of all repairs, so that later events win. `into` is the section of new
        pages whose source names none.
        """
        self._scope, self._findings, self._began = scope, findings, began_ms
        self._pages = PageRepository.of(client, name, site, draft=True)
        self._equal = EqualPages(site, self._pages, began_ms)
        self._listing = PageScan(client, name)
        self._translator = EventMapper(site.rules, into)
        self._policy = Policy(site.routing, site.hints, began_ms)
        self._base, self._families, self._site = site.base, frozenset(site.limits), site
        self._most_bytes = site.rules.most_bytes
        self._incomplete, self._partial = "", False

    def run(
        self, items: Iterable[Item], *, on_remark: Callable[[Remark], None],
        seen: Callable[[int], None] = lambda _: None,
    ) -> DiffOutcome:  # fmt: skip
        """Compare; `on_remark` gets what the source lacks, `seen` the number of items read.

        Raises SourceError from `items`, StoreError, and ReconcileError if there is no room on disk.
        """
        with StatementSpool(self._began, self._most_bytes) as spool:
            for batch in batches(items, BATCH):
                for item in batch:
                    page = self._translator.page(item, None, on_remark)
                    if page is None or not isinstance(item, SourceRecord):
                        self._left_out(item)
                    else:
                        spool.add(page, item.where, item.silent)
                seen(len(batch))
            for some in spool.pages(on_remark):
                equal = self._equal.find(some)
                self._right(equal)
                rest = (
                    (page, silent)
                    for page, silent in zip(some.pages, some.silent, strict=True)
                    if page.loc not in equal
                )
                for part in batches(rest, DECIDED_AT_ONCE):
                    self._source(
                        {page.loc or "": Stated(self._repair(page), said) for page, said in part}
                    )
                seen(0)
        listed, meant = self._walk()
        source = self._findings.source()
        return DiffOutcome(
            source.pages, source.meant, listed, meant, self._incomplete, self._partial
        )

    def _repair(self, page: StatedPage) -> Event:
        event = page.event() if isinstance(page, PlainPage) else page
        return replace(event, version=self._began)

    def _left_out(self, item: Item) -> None:
        """Record a page that the source names and cannot give: it is not extra.

        A refusal may concern any page, or many; except for a page that must not be listed (PROTOCOL
        L8), or a document that was read already (N4).
        """
        self._partial |= isinstance(item, Note) and item.rule == PARTIAL
        if isinstance(item, RecordRefusal):
            if item.rule == "L8" or (item.rule == "N4" and not item.whole):
                return
            self._incomplete = self._incomplete or f"{item.where}: {item.detail} ({item.rule})"
        if isinstance(item, (SourceRecord, RecordRefusal)) and item.loc:
            with contextlib.suppress(UrlError):  # not a page of this site
                self._findings.named([urls.canonical(item.loc, self._base)])

    def _right(self, equal: Mapping[str, str]) -> None:
        meant = {loc for loc, name in equal.items() if self._scope.holds(loc, frozenset({name}))}
        self._findings.named(equal.keys() - meant)
        self._findings.named(meant, meant=True)
        self._findings.right(equal)

    def _source(self, stated: Mapping[str, Stated]) -> None:
        if not stated:
            return
        verdicts = self._verdicts(stated)
        doubtful = {
            loc: stated[loc]
            for loc, verdict in verdicts.items()
            if verdict.decision.changed and _live(verdict)
        }
        if completed := self._completed(doubtful, verdicts) if doubtful else {}:
            stated = {**stated, **completed}
            verdicts |= self._verdicts(completed)
        meant = {loc for loc, v in verdicts.items() if self._scope.holds(loc, v.families)}
        self._findings.named(verdicts.keys() - meant)
        self._findings.named(meant, meant=True)
        self._findings.named(v.leaves for v in verdicts.values() if v.leaves)
        self._findings.right(loc for loc in verdicts if not verdicts[loc].decision.changed)
        for loc in stated:
            if loc in meant and verdicts[loc].decision.changed:
                self._findings.found(_finding(stated[loc], verdicts[loc]))

    def _verdicts(self, stated: Mapping[str, Stated]) -> dict[str, DiffVerdict]:
        return with_sections(partial(self._decide, stated), self._pages.sections.numbers)

    def _decide(self, stated: Mapping[str, Stated]) -> dict[str, DiffVerdict]:
        state = self._pages.read([each.event for each in stated.values()]).state
        before = {**state.pages}
        return {loc: self._verdict(state, each, before[loc]) for loc, each in stated.items()}

    def _verdict(self, state: BatchState, stated: Stated, before: PageRecord | None) -> DiffVerdict:
        """Return the verdict on one page, and make its changes a part of `state`."""
        event = stated.event
        loc, owner = subjects(event, former=state.former_owners)
        assert loc is not None
        if before and before.live and "section" in stated.silent:
            event = replace(event, section=None)
        claim = state.claims.get(owner) if owner else None
        sections = {state.section_of(loc)}
        decision = decide(state, event, Arrival(self._began, 0), self._policy)
        # Each page against the stored groups: the source states all members at once.
        include(state, replace(decision.changes, groups={}, linked={}))
        sections.add(state.section_of(loc))
        names = {state.names.get(number) for number in sections if number is not None}
        families = frozenset(family_of(name, self._families) for name in names if name)
        leaves = claim.loc if claim and decision.changed and claim.loc != loc else ""
        return DiffVerdict(event, decision, before, families, leaves)

    def _completed(
        self, stated: Mapping[str, Stated], verdicts: Mapping[str, DiffVerdict]
    ) -> dict[str, Stated]:
        """Return those of `stated` of which something is kept, with that."""
        listed = {loc: page for loc in stated if (page := verdicts[loc].before)}
        kept = KeptMembers(self._pages.lookup, self._site, listed)
        return {
            loc: Stated(replace(event, **members), silent)
            for loc, (event, silent) in stated.items()
            if (members := kept.of(event, silent))
        }

    def _walk(self) -> tuple[int, int]:
        """Look up every listed page; return the number of all, and of those in the scope."""
        listed = meant = 0
        names = [
            name for name in self._pages.sections.numbers() if not self._pages.limits_of(name).reuse
        ]
        for shard, urls_in in self._listing.shards(sorted(names)).items():
            listed += urls_in
            families = frozenset({family_of(shard.section, self._families)})
            if self._scope.section is not None and self._scope.section not in families:
                continue
            for locs in batches(self._listing.locs(shard), BATCH):
                asked = [loc for loc in locs if self._scope.holds(loc, families)]
                meant += len(asked)
                if asked and not self._partial and (unnamed := self._findings.unnamed(asked)):
                    self._extra(unnamed)
        return listed, meant

    def _extra(self, locs: list[str]) -> None:
        events = [Event("delete", loc, version=self._began) for loc in locs]
        state = self._pages.read(events).state
        for event in events:
            assert event.loc is not None
            if decide(state, event, Arrival(self._began, 0), self._policy).changed:
                why = "not in the source"
                self._findings.found(SourceDifference(EXTRA, event.loc, why, event))


def _live(verdict: DiffVerdict) -> bool:
    return verdict.before is not None and verdict.before.live


def _finding(stated: Stated, verdict: DiffVerdict) -> SourceDifference:
    event, reason = verdict.event, verdict.decision.reason
    assert event.loc is not None
    grouped = verdict.before is not None and bool(verdict.before.group)
    if grouped and "alternates" in stated.silent:
        return SourceDifference(STALE, event.loc, _IN_GROUP, None)
    return SourceDifference(MISSING if reason == "added" else STALE, event.loc, reason, event)
