"""The Celery application: its settings, its schedule."""

from __future__ import annotations

from celery import Celery
from kombu import Queue

from shared import messages
from shared.settings import Settings
from worker import broker

BROKER_TIMEOUT_S = 10.0


def create_worker_app(settings: Settings) -> Celery:
    """Celery for workers and the schedule; tasks are added by worker.tasks.

    Every setting that is not the default has its reason in DESIGN 9: messages only wake, so they
    are acknowledged early, carry nothing worth keeping, and nothing is ever stored as a result.
    """
    app = Celery(messages.APP, broker=messages.broker_url(settings.redis_url), set_as_current=False)
    app.conf.update(
        task_default_queue=messages.QUEUE,
        # Taken is done with: noting down and striking out each message would cost two flushes
        # before every publish, for messages that may be lost anyway.
        task_queues=[
            Queue(messages.QUEUE, no_ack=True),
            Queue(messages.RECONCILE_QUEUE, no_ack=True),
            Queue(messages.NOTIFY_QUEUE, no_ack=True),
        ],
        task_routes={
            messages.RECONCILE: {"queue": messages.RECONCILE_QUEUE},
            messages.NOTIFY: {"queue": messages.NOTIFY_QUEUE},
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
        broker_transport_options=messages.broker_options(BROKER_TIMEOUT_S),
        beat_max_loop_interval=messages.SWEEP_S,
        beat_schedule={
            "sweep": {
                "task": messages.SWEEP,
                "schedule": messages.SWEEP_S,
                # A sweep that nobody took in time is of no use; the next one is coming.
                "options": {"expires": messages.SWEEP_S},
            },
            "tidy": {
                "task": messages.TIDY,
                "schedule": messages.TIDY_S,
                "options": {"expires": messages.TIDY_S},
            },
            "refresh": {
                "task": messages.REFRESH,
                "schedule": messages.REFRESH_S,
                "options": {"expires": messages.REFRESH_S},
            },
            "reconcile": {
                "task": messages.RECONCILE,
                "schedule": messages.RECONCILE_S,
                "options": {"expires": messages.RECONCILE_S},
            },
        },
    )
    broker.install(app)
    return app
