"""Deferred events of one site that are due: each is decided again, as if it arrived now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from shared.config.sites.site import Site
from shared.domain.batch_state import BatchState, Changes, Policy
from shared.domain.decide import decide, include
from shared.domain.decide_batch import copied, with_sections
from shared.domain.deferral import AT, Deferral
from shared.domain.page_record import Arrival
from shared.events.event import Event
from shared.store.pages.changes import ReadBatch
from shared.store.pages.page_repository import PageRepository
from worker.ingest.event_processor import of_site
from worker.ingest.group_relink import note, relink

Decided = tuple[str, str, str, bool]
"""Event id (empty: no event has just arrived), loc, reason, whether published bytes change."""


class DeferredEvents:
    """Decides the deferred events of one site, stored in its `pages`."""

    def __init__(self, site: Site, pages: PageRepository) -> None:
        self._pages, self._routing, self._hints = pages, site.routing, site.hints
        self._shares_groups, self._titled = bool(site.translations), site.outputs.llms
        self._base, self._notifies = site.base, bool(site.notify.of_pages)

    def decided(
        self, keys: Sequence[str], now_ms: int
    ) -> tuple[ReadBatch, BatchState, list[Decided]]:
        """Return what is stored of the deferrals `keys`, due at `now_ms` (since 1970), the state
        after their events, and the decisions.

        Raises StoreError, SchemaError if a stored one is damaged, LostLineError while an entry of
        their translation groups is being published.
        """
        due = {
            key: Deferral.unpack(stored) for key, stored in self._pages.lookup.coming(keys).items()
        }
        decided = partial(self._decided, keys, due, now_ms)
        return with_sections(decided, self._pages.sections.numbers)

    def _decided(
        self, keys: Sequence[str], due: Mapping[str, Deferral], now_ms: int
    ) -> tuple[ReadBatch, BatchState, list[Decided]]:
        policy = Policy(self._routing, self._hints, now_ms, titled=self._titled)
        # The pages of deferrals that are gone, too: they are compared like all others.
        subjects = [Event("upsert", key.removeprefix(AT)) for key in keys if key not in due]
        read = self._pages.read([*(each.event for each in due.values()), *subjects])
        after, decisions = copied(read.state), list[Decided]()
        include(after, Changes(expiry=dict.fromkeys(keys, 0), coming=dict.fromkeys(due, b"")))
        for key, (stamp, due_ms, event) in due.items():
            of_site(event, self._base)
            if due_ms > now_ms:  # deferred further by another event since it was due
                include(after, Changes(expiry={key: due_ms}, coming={key: due[key].pack()}))
                continue
            decision = decide(
                after, event, Arrival(due_ms, 0), policy, quiet=not self._notifies, when=stamp
            )
            include(after, decision.changes)
            decisions.append(("", key.removeprefix(AT), decision.reason, decision.changed))
        if after.groups:
            relink(self._pages, read, after)
            if self._shares_groups:
                note(read, after, now_ms)
        return read, after, decisions
