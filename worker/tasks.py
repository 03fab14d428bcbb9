"""What workers do on a message: wake a site, sweep all of them, tidy up."""

from __future__ import annotations

from celery import Celery, signals

from shared import messages
from shared.errors import StoreError
from shared.telemetry import logger
from worker.plant import Plant

_log = logger("worker")


def register(app: Celery, plant: Plant) -> None:
    """Give `app` its tasks, done by `plant`, and let the plant start and stop with the worker.

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

    @signals.worker_ready.connect(weak=False)
    def ready(**_: object) -> None:
        plant.start()

    @signals.worker_shutting_down.connect(weak=False)
    def stopping(**_: object) -> None:
        plant.stop()
