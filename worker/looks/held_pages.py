"""Events that wait for a look at their page: made due by what it finds, or dropped."""

from __future__ import annotations

from typing import Any

import redis

from shared.clock import now_ms
from shared.config.sites.site import Site
from shared.domain.batch_state import Changes
from shared.domain.decide import include
from shared.domain.decide_batch import copied
from shared.domain.deferral import AT, Deferral
from shared.domain.looks import held_events
from shared.domain.looks.answers import Grade, Verdict
from shared.domain.looks.record import LookRecord
from shared.domain.page_record import PageRecord
from shared.events.event import SchemaError
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.looks.look_store import LookState, LookStore
from shared.store.pages.page_repository import PageRepository

MOST = 500
"""Deferred events that are read at once."""


class HeldPages:
    """Pages of one site whose event waits for a look."""

    def __init__(self, client: redis.Redis, name: str, site: Site, store: LookStore) -> None:
        assert site.pages is not None
        self._client, self._keys, self._store = client, keys_of(name), store
        self._pages = PageRepository.of(client, name, site)
        gate_ms, self._prove_ms = site.waits_ms
        self._longest_ms = max(gate_ms, self._prove_ms)
        self._confirm_ms = round(site.pages.confirm_minutes * 60_000)

    def fill(self, state: LookState) -> LookState:
        """Let the pages of events that wait since `state` be looked at first."""
        if not self._longest_ms:
            return state
        start, end = f"({state.held}", now_ms() + self._longest_ms
        with answering():
            found: Any = self._client.zrangebyscore(
                self._keys.expiry, start, end, 0, MOST, withscores=True
            )
        names = [(key.decode(), at) for key, at in found]
        self._store.add_due({key.removeprefix(AT): at for key, at in names if key.startswith(AT)})
        if not names or int(names[-1][1]) == state.held:
            return state
        self._store.change(held=int(names[-1][1]))
        return state._replace(held=int(names[-1][1]))

    def find(self, loc: str, page: PageRecord) -> Deferral | None:
        """Return the event of the page `loc` that waits for a look; None if none does."""
        if not self._longest_ms:
            return None
        stored = self._pages.lookup.coming([AT + loc]).get(AT + loc)
        try:
            held = Deferral.unpack(stored) if stored else None
        except SchemaError:  # a check of the state reports it
            return None
        if held is None or held.stamp != page.stamp or held_events.is_timed(held.event):
            return None
        # One that is due was let go by an earlier look: the next sweep decides it.
        return held if held.due_ms > now_ms() else None

    def settle(
        self, loc: str, held: Deferral, verdict: Verdict, before: LookRecord | None,
        record: LookRecord, *, listed: bool,
    ) -> tuple[LookRecord, int]:  # fmt: skip
        """Make the event due, or drop it; return the record to be kept, and when the page is to be
        looked at again for it (ms; 0: not).
        """
        if verdict.grade >= Grade.UNSURE:
            return record, 0  # looked at again like any page that is not good
        if not listed:
            self._decide(loc, held, now_ms(), "")
            return record, 0
        known = before.print if before else b""
        if not known or not record.print or record.print != known or record.fresh:
            self._decide(loc, held, now_ms(), "")
            return record._replace(fresh=False), 0
        settled_ms = held.due_ms - self._prove_ms + self._confirm_ms
        if now_ms() < settled_ms:
            return record, settled_ms  # caches may still serve what was there before
        self._decide(loc, held, 0, f"its date stays: the page is as before ({known.hex()})")
        return record, 0

    def _decide(self, loc: str, held: Deferral, due_ms: int, why: str) -> None:
        """Let the event be decided at `due_ms`, or drop it: 0. Nothing is written if another event
        decided on the page meanwhile.
        """
        key = AT + loc
        read = self._pages.read_keys([loc])
        page = read.state.pages.get(loc)
        if page is None or page.stamp != held.stamp:
            return
        after = copied(read.state)
        stored = held._replace(due_ms=due_ms).pack() if due_ms else b""
        include(after, Changes(coming={key: stored}, expiry={key: due_ms}))
        self._pages.apply(read, after, decisions=[("", loc, why, False)] if why else [])
