"""One task per event, as anybody would write it, with every safe setting of Celery on.

Settings as Celery's own documentation advises for tasks that must not be lost: acknowledged after
they ran, given back if the worker's child dies, one at a time, a short visibility timeout.
"""

from __future__ import annotations

import os

import redis
from celery import Celery

QUEUE = "plain"
PAGES = "pages"
RUNS = "runs"
VISIBILITY_S = 5


def create(broker: str, store: str) -> Celery:
    """The application: `broker` is a URL, `store` the Unix socket where the task writes."""
    app = Celery("plain", broker=broker, set_as_current=False)
    app.conf.update(
        task_default_queue=QUEUE,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_channel_error_retry=True,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_S,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
            "socket_timeout": 10.0,
        },
    )
    client = redis.Redis(unix_socket_path=store) if store else None

    @app.task(name="put", shared=False)
    def put(event: int, page: str) -> None:
        """Write the page's version, which is the event's number; count the runs of each event."""
        assert client is not None
        with client.pipeline(transaction=True) as pipe:
            pipe.hset(PAGES, page, event)
            pipe.hincrby(RUNS, str(event), 1)
            pipe.execute()

    return app


app = create(os.environ.get("PLAIN_BROKER", ""), os.environ.get("PLAIN_STORE", ""))
