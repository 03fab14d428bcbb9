"""Count the answers to deliveries and their durations; begin and end the span of each, if traced.

A request only puts what it is into a queue. A thread counts that and stores the counts each second,
so that no delivery waits for it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from bisect import bisect_left
from queue import Empty, SimpleQueue

import redis
from flask import Flask, Response, g, request

from shared.errors import StoreError
from shared.metrics.declarations import ANSWER_BOUNDS_MS
from shared.store.counting.counter_buffer import CounterBuffer
from shared.telemetry import tracing
from webhook.request_body import headers
from webhook.responses import DELIVERIES, AnsweredDelivery

FLUSH_S = 1.0
_NAME = "sitemapd-measuring"
_OF_STATUS = {
    202: "accepted", 401: "unauthorized", 429: "limited", 500: "failed", 503: "unavailable",
}  # fmt: skip


class RequestMetrics:
    """Counters of one process by site, flushed to Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._counts, self._client = CounterBuffer(), client
        self._answered: SimpleQueue[AnsweredDelivery] = SimpleQueue()
        self.note = self._answered.put
        """Take one answered delivery; never waits."""

    def attend(self, app: Flask) -> None:
        """Measure the deliveries of `app`, and trace them if this process is traced."""
        app.extensions[_NAME] = self
        if tracing.active:
            app.before_request(_begin_span)
            app.after_request(_describe_span)
            app.teardown_request(_end_span)

    def flush(self) -> None:
        """Store the counts. Raises StoreError; the counts are kept then."""
        with contextlib.suppress(Empty):
            for _ in range(self._answered.qsize()):
                self._count(self._answered.get_nowait())
        self._counts.flush(self._client)

    def _count(self, answered: AnsweredDelivery) -> None:
        site, answer = answered.site, _answer(answered)
        bucket = bisect_left(ANSWER_BOUNDS_MS, answered.took_s * 1000)
        self._counts.add(site, f"answered:{answer}:{bucket}")
        self._counts.add(site, f"answered:{answer}:us", max(1, round(answered.took_s * 1e6)))
        if answered.key:
            self._counts.add(site, f"verified:{answered.key}")

    def start(self) -> None:
        """Start the thread that stores the counts, at most FLUSH_S (seconds) late."""
        threading.Thread(target=self._run, name="measuring", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._count(self._answered.get())
            stored = False
            while not stored:
                time.sleep(FLUSH_S)  # collects further answers
                # Counts are kept until Redis answers again; requests log its failure.
                with contextlib.suppress(StoreError):
                    self.flush()
                    stored = True


def _answer(answered: AnsweredDelivery) -> str:
    if answered.status == 200:
        if answered.code == "duplicate":
            return "duplicate"
        return "accepted" if answered.events else "ignored"
    return _OF_STATUS.get(answered.status, "refused")


def _begin_span() -> None:
    if request.endpoint in DELIVERIES:
        g.span = contextlib.ExitStack()
        route = str(request.url_rule)
        g.span.enter_context(tracing.serving(headers(request.environ), route))


def _describe_span(response: Response) -> Response:
    if "span" in g:
        tracing.note(
            {"http.response.status_code": response.status_code}
            | {f"sitemapd.{name}": g.facts.get(name) for name in ("site", "code", "events")}
        )
    return response


def _end_span(_error: BaseException | None = None) -> None:
    if "span" in g:
        g.pop("span").close()


def of(app: Flask) -> RequestMetrics:
    """Return the RequestMetrics of `app`."""
    found: RequestMetrics = app.extensions[_NAME]
    return found
