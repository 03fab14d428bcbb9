"""Celery tasks of workers: wake a site, sweep, tidy, refresh, reconcile, notify, follow."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import Any

from celery import Celery, signals

from shared import task_names
from shared.errors import StoreError
from shared.store.operations.config_follower import ConfigFollower
from shared.telemetry.logs import logger
from worker import broker
from worker.runtime import Runtime

_EXPIRES_S = {task_names.RECONCILE: 600.0, task_names.NOTIFY: 60.0}

_log = logger("worker")


def soon(app: Celery, task: str, queue: str = "") -> Callable[[str], None]:
    """Return a function that sends `task` for a site to the end of `queue`, by default that of its
    name.

    The work is recorded in the store: a lost message only delays it until the next sweep.
    """

    def send(site: str) -> None:
        try:
            app.send_task(
                task, [site], queue=queue or task, retry=False, expires=_EXPIRES_S.get(task)
            )
        except Exception as error:  # noqa: BLE001  # any error of kombu
            _log.warning("no message", task=task, site=site, reason=type(error).__name__)

    return send


def wake_hosts(app: Celery, site: str, hosts: set[str]) -> None:
    """Send a message to each of `hosts` (empty: any worker), unless one waits there: a host that is
    down must not fill the broker.
    """
    for host in hosts:
        queue = task_names.follow_queue(host)
        try:
            if not broker.waiting(app, queue):
                app.send_task(task_names.FOLLOW, [site], queue=queue, retry=False, expires=60.0)
        except Exception as error:  # noqa: BLE001  # any error of kombu
            _log.warning("no message", task=queue, site=site, reason=type(error).__name__)


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


def register(app: Celery, runtime: Callable[[], Runtime]) -> None:
    """Add the tasks to `app`, carried out by what `runtime` returns.

    A failed task is not retried: the sweep is the retry.
    """

    again = soon(app, task_names.WAKE, task_names.QUEUE)

    @app.task(name=task_names.WAKE)
    def wake(site: str) -> None:
        try:
            more = runtime().take_turn(site)
        except StoreError as error:
            _log.error("wake-up failed", site=site, reason=str(error))
            return
        if more:
            again(site)

    alone: dict[str, Callable[[Runtime], object]] = {
        task_names.SWEEP: Runtime.sweep, task_names.RECONCILE: Runtime.reconcile,
        task_names.NOTIFY: Runtime.notify, task_names.FOLLOW: Runtime.follow_targets,
        task_names.TIDY: lambda runtime: runtime.upkeep.tidy(),
        task_names.REFRESH: lambda runtime: runtime.upkeep.refresh(),
    }  # fmt: skip
    for name, work in alone.items():
        app.task(name=name)(_alone(runtime, work))


def accompany(
    runtime: Runtime, queues: Sequence[str], threads: int, follower: ConfigFollower
) -> None:
    """Let `runtime` start and stop with the Celery worker of this process.

    The worker has so many `threads`, listens to `queues`, and takes changed settings by `follower`.
    """

    @broker.dropped.connect(weak=False)
    def dropped(**_: object) -> None:
        runtime.dropped()

    @signals.worker_ready.connect(weak=False)
    def ready(sender: Any, **_: object) -> None:
        # Celery's own handler would start the process anew.
        signal.signal(signal.SIGHUP, lambda *_: follower.ask())
        runtime.start(threads, lambda quiet: listen(sender, queues, quiet=quiet), follower.look)

    @signals.worker_shutting_down.connect(weak=False)
    def stopping(**_: object) -> None:
        runtime.stop()

    @signals.worker_shutdown.connect(weak=False)
    def ended(**_: object) -> None:
        runtime.end()
        follower.end()


def _alone(
    runtime: Callable[[], Runtime], work: Callable[[Runtime], object]
) -> Callable[..., None]:
    """Return a task that ignores its arguments; some messages name the site, for monitoring."""

    def run(*_: object) -> None:
        work(runtime())

    return run
