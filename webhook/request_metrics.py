"""Response times and outcomes of deliveries: counted in memory, stored each second by a thread of
its own, so that no delivery waits for it. Also the span of each delivery, if tracing is on.
"""

from __future__ import annotations

import contextlib
import threading
import time
from bisect import bisect_left

import redis
from flask import Flask, Response, g, request

from shared import tracing
from shared.errors import StoreError
from shared.metrics.declarations import ANSWER_BOUNDS_MS
from shared.store.counting.counter_buffer import CounterBuffer
from webhook.request_body import headers

FLUSH_S = 1.0
_NAME = "sitemapd-measuring"
_MEASURED = {"events", "hooks", "feeds"}
_OF_STATUS = {
    202: "accepted", 401: "unauthorized", 429: "limited", 500: "failed", 503: "unavailable",
}  # fmt: skip


class RequestMetrics:
    """Counters of one process by site, flushed to Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._tally, self._client = CounterBuffer(), client
        self._due = threading.Event()

    def attend(self, app: Flask) -> None:
        """Measure the deliveries of `app`."""
        app.extensions[_NAME] = self
        app.before_request(self._begin)
        app.after_request(self._end)
        app.teardown_request(self._leave)

    def flush(self) -> None:
        """Store the counts. Raises StoreError; the counts are kept then."""
        self._tally.flush(self._client)

    def _begin(self) -> None:
        if request.endpoint not in _MEASURED:
            return
        g.came = time.perf_counter()
        if tracing.on():
            g.span = contextlib.ExitStack()
            g.span.enter_context(tracing.serving(headers(request.environ), str(request.url_rule)))

    def _end(self, response: Response) -> Response:
        if "came" in g:
            took = time.perf_counter() - g.came
            answer, site = _answer(response.status_code), g.facts.get("site") or ""
            self._count(site, answer, took)
            if tracing.on():
                tracing.note(
                    {"http.response.status_code": response.status_code}
                    | {f"sitemapd.{name}": g.facts.get(name) for name in ("site", "code", "events")}
                )
        return response

    def _leave(self, _error: BaseException | None = None) -> None:
        if "span" in g:
            g.pop("span").close()

    def _count(self, site: str, answer: str, took: float) -> None:
        at = bisect_left(ANSWER_BOUNDS_MS, took * 1000)
        self._tally.add(site, f"answered:{answer}:{at}")
        self._tally.add(site, f"answered:{answer}:us", max(1, round(took * 1e6)))
        if key := g.facts.get("key"):
            self._tally.add(site, f"verified:{key}")
        self._due.set()

    def start(self) -> None:
        """Start the thread that stores the counts, at most FLUSH_S (seconds) late."""
        threading.Thread(target=self._run, name="measuring", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._due.wait()
            time.sleep(FLUSH_S)  # collects further counts
            self._due.clear()
            try:
                self.flush()
            except StoreError:
                self._due.set()  # kept, and sent when Redis answers again; requests log its failure


def _answer(status: int) -> str:
    if status == 200:
        if g.facts.get("code") == "duplicate":
            return "duplicate"
        return "accepted" if g.facts.get("events") else "ignored"
    return _OF_STATUS.get(status, "refused")


def of(app: Flask) -> RequestMetrics:
    """Return the RequestMetrics of `app`."""
    found: RequestMetrics = app.extensions[_NAME]
    return found
