"""Celery tasks of workers: wake a site, sweep, tidy, refresh, reconcile, notify."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from celery import Celery, signals

from shared import task_names
from shared.errors import StoreError
from shared.telemetry.logs import logger
from worker import broker
from worker.runtime import Runtime

_EXPIRES_S = {task_names.RECONCILE: 600.0, task_names.NOTIFY: 60.0}

_log = logger("worker")


def soon(app: Celery, task: str) -> Callable[[str], None]:
    """Return a function that sends `task` for a site to the queue of that name.

    The work is recorded in the store: a lost message only delays it until the next sweep.
    """

    def send(site: str) -> None:
        try:
            app.send_task(task, [site], queue=task, retry=False, expires=_EXPIRES_S[task])
        except Exception as error:  # noqa: BLE001  # any error of kombu
            _log.warning("no message", task=task, site=site, reason=type(error).__name__)

    return send


def listen(consumer: Any, queues: Sequence[str], *, quiet: bool) -> None:
    """Let a Celery worker stop taking messages from `queues`, or take them again.

    Callable from any thread. Without a connection the change applies to the next one, and to all
    after that.
    """

    def change() -> None:
        for queue in queues:
            try:
                consumer.cancel_task_queue(queue) if quiet else consumer.add_task_queue(queue)
            except Exception as error:  # noqa: BLE001  # would end the worker's loop
                _log.warning("queue not changed", queue=queue, reason=type(error).__name__)

    consumer.call_soon(change)


def register(app: Celery, runtime: Runtime, queues: Sequence[str], threads: int) -> None:
    """Add the tasks to `app`, carried out by `runtime`, which starts and stops with the worker.

    The worker has so many `threads` and listens to `queues`. A failed task is not retried: the
    sweep is the retry.
    """

    @app.task(name=task_names.WAKE)
    def wake(site: str) -> None:
        try:
            runtime.wake(site)
        except StoreError as error:
            _log.error("wake-up failed", site=site, reason=str(error))

    alone: dict[str, Callable[[], object]] = {
        task_names.SWEEP: runtime.sweep, task_names.TIDY: runtime.tidy,
        task_names.REFRESH: runtime.refresh, task_names.RECONCILE: runtime.reconcile,
        task_names.NOTIFY: runtime.notify,
    }  # fmt: skip
    for name, work in alone.items():
        app.task(name=name)(_alone(work))

    @broker.dropped.connect(weak=False)
    def dropped(**_: object) -> None:
        runtime.dropped()

    @signals.worker_ready.connect(weak=False)
    def ready(sender: Any, **_: object) -> None:
        runtime.start(threads, lambda quiet: listen(sender, queues, quiet=quiet))

    @signals.worker_shutting_down.connect(weak=False)
    def stopping(**_: object) -> None:
        runtime.stop()

    @signals.worker_shutdown.connect(weak=False)
    def ended(**_: object) -> None:
        runtime.end()


def _alone(work: Callable[[], object]) -> Callable[..., None]:
    """Return a task that ignores its arguments; some messages name the site, for monitoring."""

    def run(*_: object) -> None:
        work()

    return run
