"""What workers do on a message: wake a site, sweep all of them, tidy up, see what to reconcile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from celery import Celery, signals

from shared import messages
from shared.errors import StoreError
from shared.telemetry import logger
from worker.plant import Plant

RECONCILE_EXPIRES_S = 600.0

_log = logger("worker")


def reconcile_soon(app: Celery) -> Callable[[str], None]:
    """Tells the workers that reconcile of a resync; a message that is lost costs a minute."""

    def send(site: str) -> None:
        try:
            app.send_task(
                messages.RECONCILE, [site], queue=messages.RECONCILE_QUEUE,
                retry=False, expires=RECONCILE_EXPIRES_S,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001  # whatever kombu raises, the resync is recorded
            _log.warning("no message for a resync", site=site, reason=type(error).__name__)

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


def register(app: Celery, plant: Plant, queues: Sequence[str], threads: int) -> None:
    """Give `app` its tasks, done by `plant`, and let the plant start and stop with the worker,
    which has so many `threads` and listens to `queues`.

    A task that fails is not tried again: the sweep is the retry.
    """

    @app.task(name=messages.WAKE)
    def wake(site: str) -> None:
        try:
            plant.wake(site)
        except StoreError as error:
            _log.error("wake-up failed", site=site, reason=str(error))

    @app.task(name=messages.SWEEP)
    def sweep() -> None:
        plant.sweep()

    @app.task(name=messages.TIDY)
    def tidy() -> None:
        plant.tidy()

    @app.task(name=messages.REFRESH)
    def refresh() -> None:
        plant.refresh()

    @app.task(name=messages.RECONCILE)
    def reconcile(site: str | None = None) -> None:  # noqa: ARG001  # said for people who watch
        plant.reconcile()

    @signals.worker_ready.connect(weak=False)
    def ready(sender: Any, **_: object) -> None:
        plant.start(threads, lambda quiet: listen(sender, queues, quiet=quiet))

    @signals.worker_shutting_down.connect(weak=False)
    def stopping(**_: object) -> None:
        plant.stop()

    @signals.worker_shutdown.connect(weak=False)
    def ended(**_: object) -> None:
        plant.end()
