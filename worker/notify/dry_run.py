"""Manual trial of an engine: show its requests, and send a harmless one."""

from __future__ import annotations

import time
from collections.abc import Sequence

from shared.store.notify.notification_queue import Fate
from worker.http.exchange import OutboundRequest
from worker.notify.dispatcher import Dispatcher
from worker.notify.engine import Engine, NotificationOutcome, NotifiedPage
from worker.notify.engines.google import GoogleIndexing
from worker.notify.engines.indexnow import IndexNow


def drafts(teller: Engine, home: str) -> Sequence[OutboundRequest]:
    """Return the requests for the page `home`, without credentials."""
    page = NotifiedPage(home, live=True, section=next(iter(getattr(teller, "sections", ())), ""))
    return teller.requests([page], teller.endpoints[0])


def send(telling: Dispatcher, engine: str, home: str, now: int) -> list[NotificationOutcome]:
    """Check the key of `engine` and notify it of the page `home`; a success closes its breaker.

    Google's Indexing API is for some pages only, so only its credentials are tried. `now` in
    milliseconds since 1970. Raises StoreError.
    """
    teller = telling.tellers[engine]
    endpoint, found = teller.endpoints[0], list[NotificationOutcome]()
    if isinstance(teller, IndexNow | GoogleIndexing):
        found.append(telling.prepared(teller) or teller.check())
    if not isinstance(teller, GoogleIndexing) and all(outcome.told for outcome in found):
        started = time.monotonic()
        outcome = teller.tell([NotifiedPage(home, live=True)], endpoint)
        took = int((time.monotonic() - started) * 1000)
        telling.notices.spend(engine, now, 1)
        telling.notices.record(
            Fate(now, engine, endpoint, 1, (home,), outcome.status, outcome.verdict, took,
                 outcome.detail)
        )  # fmt: skip
        found.append(outcome)
    if all(outcome.told for outcome in found):
        telling.notices.set_breaker(engine, endpoint, None)
    return found
