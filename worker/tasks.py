"""What workers do on a message: wake a site, sweep all of them, tidy up, see what to reconcile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from celery import Celery, signals

from shared import task_names
from shared.errors import StoreError
from shared.logs import logger
from worker import broker
from worker.runtime import Runtime

_EXPIRES_S = {task_names.RECONCILE: 600.0, task_names.NOTIFY: 60.0}

_log = logger("worker")


def soon(app: Celery, task: str) -> Callable[[str], None]:
    """Tells the workers that do `task`, in a queue of its name, of a site that has work for it.

    What is to be done is recorded: a message that is lost costs until they look by themselves.
    """

    def send(site: str) -> None:
        try:
            app.send_task(task, [site], queue=task, retry=False, expires=_EXPIRES_S[task])
        except Exception as error:  # noqa: BLE001  # whatever kombu raises
            _log.warning("no message", task=task, site=site, reason=type(error).__name__)

    return send


def listen(consumer: Any, queues: Sequence[str], *, quiet: bool) -> None:
    """Have a Celery worker take no more messages from `queues`, or take them again.

    From any thread; without a connection it holds for the next one, as for all after that.
    """

    def change() -> None:
        for queue in queues:
            try:
                consumer.cancel_task_queue(queue) if quiet else consumer.add_task_queue(queue)
            except Exception as error:  # noqa: BLE001  # it would end the worker's loop
                _log.warning("queue not changed", queue=queue, reason=type(error).__name__)

    consumer.call_soon(change)


def register(app: Celery, plant: Runtime, queues: Sequence[str], threads: int) -> None:
    """Give `app` its tasks, done by `plant`, and let the plant start and stop with the worker,
    which has so many `threads` and listens to `queues`.

    A task that fails is not tried again: the sweep is the retry.
    """

    @app.task(name=task_names.WAKE)
    def wake(site: str) -> None:
        try:
            plant.wake(site)
        except StoreError as error:
            _log.error("wake-up failed", site=site, reason=str(error))

    alone: dict[str, Callable[[], object]] = {
        task_names.SWEEP: plant.sweep, task_names.TIDY: plant.tidy,
        task_names.REFRESH: plant.refresh, task_names.RECONCILE: plant.reconcile,
        task_names.NOTIFY: plant.notify,
    }  # fmt: skip
    for name, work in alone.items():
        app.task(name=name)(_alone(work))

    @broker.dropped.connect(weak=False)
    def dropped(**_: object) -> None:
        plant.dropped()

    @signals.worker_ready.connect(weak=False)
    def ready(sender: Any, **_: object) -> None:
        plant.start(threads, lambda quiet: listen(sender, queues, quiet=quiet))

    @signals.worker_shutting_down.connect(weak=False)
    def stopping(**_: object) -> None:
        plant.stop()

    @signals.worker_shutdown.connect(weak=False)
    def ended(**_: object) -> None:
        plant.end()


def _alone(work: Callable[[], object]) -> Callable[..., None]:
    """A task that needs no argument; some are given the site, for people who watch."""

    def run(*_: object) -> None:
        work()

    return run
