"""Manual trial of an engine: show its requests, and send a harmless one."""

from __future__ import annotations

import time
from collections.abc import Sequence

from shared.store.notify.notification_queue import RequestRecord
from worker.http.exchange import OutboundRequest
from worker.notify.dispatcher import Dispatcher
from worker.notify.engine import Engine, NotificationOutcome, NotifiedPage
from worker.notify.engines.google import GoogleIndexing
from worker.notify.engines.indexnow import IndexNow


def drafts(api: Engine, home: str) -> Sequence[OutboundRequest]:
    """Return the requests for the page `home`, without credentials."""
    page = NotifiedPage(home, live=True, section=next(iter(getattr(api, "sections", ())), ""))
    return api.requests([page], api.endpoints[0])


def send(dispatcher: Dispatcher, engine: str, home: str, now: int) -> list[NotificationOutcome]:
    """Check the key of `engine` and notify it of the page `home`; a success closes its breaker.

    Google's Indexing API is for some pages only, so only its credentials are tried. `now` in
    milliseconds since 1970. Raises StoreError.
    """
    api = dispatcher.engine_apis[engine]
    endpoint, found = api.endpoints[0], list[NotificationOutcome]()
    if isinstance(api, IndexNow | GoogleIndexing):
        found.append(dispatcher.prepared(api) or api.check())
    if not isinstance(api, GoogleIndexing) and all(outcome.told for outcome in found):
        started = time.monotonic()
        outcome = api.submit([NotifiedPage(home, live=True)], endpoint)
        took = int((time.monotonic() - started) * 1000)
        dispatcher.notices.spend(engine, now, 1)
        dispatcher.notices.record(
            RequestRecord(now, engine, endpoint, 1, (home,), outcome.status, outcome.verdict, took,
                 outcome.detail)
        )  # fmt: skip
        found.append(outcome)
    if all(outcome.told for outcome in found):
        dispatcher.notices.set_breaker(engine, endpoint, None)
    return found
