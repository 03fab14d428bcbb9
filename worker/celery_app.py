"""The Celery application: settings and schedule."""

from __future__ import annotations

from celery import Celery
from kombu import Queue

from shared import task_names
from shared.config.settings import Settings
from worker import broker

BROKER_TIMEOUT_S = 10.0


def create_worker_app(settings: Settings) -> Celery:
    """Create the Celery application of workers and the schedule; worker.tasks adds the tasks.

    DESIGN 9 gives the reason for every setting that is not the default: messages are wake-ups only,
    so they are acknowledged early and carry no data, and no result is stored.
    """
    app = Celery(
        task_names.APP, broker=task_names.broker_url(settings.redis_url), set_as_current=False
    )
    app.conf.update(
        task_default_queue=task_names.QUEUE,
        # no_ack: recording and deleting each message would cost two flushes before every publish,
        # for messages that may be lost anyway.
        task_queues=[
            Queue(task_names.QUEUE, no_ack=True),
            Queue(task_names.RECONCILE_QUEUE, no_ack=True),
            Queue(task_names.NOTIFY_QUEUE, no_ack=True),
        ],
        task_routes={
            task_names.RECONCILE: {"queue": task_names.RECONCILE_QUEUE},
            task_names.NOTIFY: {"queue": task_names.NOTIFY_QUEUE},
        },
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        result_accept_content=["json"],
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_channel_error_retry=True,
        broker_transport_options=task_names.broker_options(BROKER_TIMEOUT_S),
        beat_max_loop_interval=task_names.SWEEP_S,
        beat_schedule={
            "sweep": {
                "task": task_names.SWEEP,
                "schedule": task_names.SWEEP_S,
                # A late sweep is useless: the next one follows.
                "options": {"expires": task_names.SWEEP_S},
            },
            "tidy": {
                "task": task_names.TIDY,
                "schedule": task_names.TIDY_S,
                "options": {"expires": task_names.TIDY_S},
            },
            "refresh": {
                "task": task_names.REFRESH,
                "schedule": task_names.REFRESH_S,
                "options": {"expires": task_names.REFRESH_S},
            },
            "reconcile": {
                "task": task_names.RECONCILE,
                "schedule": task_names.RECONCILE_S,
                "options": {"expires": task_names.RECONCILE_S},
            },
        },
    )
    broker.install(app)
    return app
