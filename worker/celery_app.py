"""The Celery application: settings and schedule.

`celery -A worker.celery_app worker` (of an installation: `-A sitemapd.celery_app`) runs it with the
command line of Celery, for the configuration that SITEMAPD_CONFIG names (default: `sitemapd.toml`
in the working directory).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celery import Celery, concurrency, signals
from kombu import Queue

from shared import task_names
from shared.config.broker import celery_settings
from shared.config.settings import FILE, Settings
from shared.config.sites.targets import host_name
from shared.errors import ConfigError, Fault
from shared.store.connection import PATIENCE_S
from worker import broker

if TYPE_CHECKING:
    from shared.config.live import LiveSettings

_THREADS = "threads"
_POOLS = {"thread", "solo", "prefork"}
"""Modules of Celery's pools that a worker runs in."""


def create_worker_app(settings: Settings) -> Celery:
    """Create the Celery application of workers and the schedule; worker.tasks adds the tasks.

    DESIGN 9 gives the reason for every setting that is not the default: messages are wake-ups only,
    so they are acknowledged early and carry no data, and no result is stored.
    """
    app = Celery(task_names.APP, set_as_current=False)
    app.conf.update(
        **celery_settings(settings.redis_url, settings.broker_url, PATIENCE_S),
        task_default_queue=task_names.QUEUE,
        # no_ack: recording and deleting each message would cost two flushes before every publish,
        # for messages that may be lost anyway.
        task_queues=[
            Queue(task_names.QUEUE, no_ack=True),
            Queue(task_names.RECONCILE_QUEUE, no_ack=True),
            Queue(task_names.NOTIFY_QUEUE, no_ack=True),
            *(Queue(task_names.follow_queue(host), no_ack=True) for host in ("", host_name())),
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


def __getattr__(name: str) -> Any:
    """Create `app` when the command line of Celery asks for it."""
    if name != "app":
        raise AttributeError(name)
    return globals().setdefault("app", _for_command_line())


def _for_command_line() -> Celery:
    """Return an application whose worker is composed once its options are known: a worker that
    does not listen to a queue leaves its work to others.
    """
    from shared.config.live import LiveSettings
    from worker.composition import THREADS

    live = LiveSettings(Path(os.environ.get("SITEMAPD_CONFIG", FILE)))
    app = create_worker_app(live.current)
    app.conf.update(worker_concurrency=THREADS)

    @signals.worker_init.connect(weak=False)
    def begin(sender: Any, **_: object) -> None:
        try:
            _begin(sender, live)
        except Exception as error:  # Celery would log it, and go on without tasks
            raise SystemExit(f"{type(error).__name__}: {error}") from error

    return app


def _begin(worker: Any, live: LiveSettings) -> None:
    """Compose `worker`, a worker of Celery's command line that is about to start."""
    from shared.store.operations.worker_registry import consumer_name
    from shared.telemetry import logs
    from worker.composition import THREADS, compose
    from worker.process_pool import compose_processes

    pool = _pool_of(worker)
    logs.configure(level=live.current.log_level, traced_as="worker", streams=True)
    queues, node = [*worker.app.amqp.queues.consume_from], worker.hostname.partition("@")[0]
    reconciles, notifies = (
        each in queues for each in (task_names.RECONCILE_QUEUE, task_names.NOTIFY_QUEUE)
    )
    name = consumer_name() if node == "celery" else node
    if pool == "prefork":
        compose_processes(worker.app, live, name, reconciles=reconciles, notifies=notifies)
        return
    many = worker.concurrency if isinstance(worker.concurrency, int) else THREADS
    compose(
        worker.app, live, name, 1 if pool == "solo" else many,
        reconciles=reconciles, notifies=notifies, queues=queues,
    )  # fmt: skip


def _pool_of(worker: Any) -> str:
    """Return the pool of `worker`, and make it one of threads if no option names another. Raises
    ConfigError for one that cannot work.
    """
    from click import get_current_context
    from click.core import ParameterSource

    context = get_current_context(silent=True)
    chosen = context and context.get_parameter_source("pool") != ParameterSource.DEFAULT
    if not chosen:
        worker.pool_cls = _THREADS
    pool = concurrency.get_implementation(worker.pool_cls).__module__.rpartition(".")[2]
    if pool not in _POOLS:
        detail = f"{pool} is not supported: a worker waits in threads; use -P threads, the default"
        raise ConfigError(Fault("pool", "config", detail))
    if pool == "prefork" and worker.pool_start_method != "fork":
        detail = "prefork needs --pool-start-method fork; else use -P threads, the default"
        raise ConfigError(Fault("pool", "config", detail))
    return pool
