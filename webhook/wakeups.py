"""Wake-ups: one Celery message for a site without an awake worker, sent without delaying a
response.

Not guaranteed: a wake-up is dropped if the broker does not answer or too many wait. The events are
already in the inbox, and the sweep finds every site with work left (DESIGN 3).
"""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import Any

from celery import Celery

from shared.config.broker import celery_settings
from shared.task_names import APP, NOTIFY_QUEUE, QUEUE, RECONCILE_QUEUE, WAKE
from shared.telemetry import logs

_LOG = logs.logger("waker")
_MAX_WAITING = 1_000
QUEUES = (QUEUE, RECONCILE_QUEUE, NOTIFY_QUEUE)


def _sender(redis_url: str, broker_url: str) -> Celery:
    app = Celery(APP, set_as_current=False)
    app.conf.update(
        **celery_settings(redis_url, broker_url, 1.0),
        broker_pool_limit=1,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        # `task_publish_retry=False` is slower: 6.1 s on a stopped server (DESIGN 9).
        task_publish_retry_policy={"max_retries": 1, "interval_start": 0, "interval_step": 0},
    )
    return app


def _length(connection: Any, name: str) -> int:
    with suppress(*connection.channel_errors), connection.channel() as channel:
        return int(channel.queue_declare(name, passive=True).message_count)
    return 0  # a queue that nobody has declared, or on Redis one that is empty


class Wakeups:
    """Sends wake-ups from one daemon thread, which starts with the first wake-up.

    Not earlier: a server may fork after the application was made, and threads do not survive a
    fork.
    """

    def __init__(self, redis_url: str, broker_url: str = "") -> None:
        self._app = _sender(redis_url, broker_url)
        self._waiting: queue.Queue[str] = queue.Queue(_MAX_WAITING)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def wake(self, site: str) -> None:
        """Send a wake-up for `site` soon; returns at once and raises nothing."""
        if self._thread is None:
            self._start()
        try:
            self._waiting.put_nowait(site)
        except queue.Full:
            _LOG.warning("wake-up dropped", site=site, reason="too many waiting")

    def queued(self) -> dict[str, int]:
        """Return the number of messages in each queue, mostly none; empty if the broker is down."""
        with suppress(Exception), self._app.connection_for_read() as connection:
            return {name: _length(connection, name) for name in QUEUES}
        return {}

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="waker", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            site = self._waiting.get()
            try:
                self._app.send_task(WAKE, (site,), queue=QUEUE, ignore_result=True)
            except Exception as error:  # noqa: BLE001  # kombu raises what its transport raises
                _LOG.warning("wake-up failed", site=site, reason=type(error).__name__)
