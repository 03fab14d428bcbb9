"""Page of the workers: their state and work, and the actions quiet, resume, stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from werkzeug.datastructures import MultiDict

from shared.store.operations.worker_registry import (
    HEARTBEAT_S,
    RegisteredWorker,
    Wish,
    WorkerRegistry,
)
from webhook.console.page_registry import ActionDone, PageRegistry, Shown

LATE_S = HEARTBEAT_S / 2
"""Seconds after which a heartbeat is late: one is sent every second (worker/loops/heartbeat.py)."""
CLOCK_S = 5.0
"""Seconds by which a worker's clock may differ from that of Redis before the page marks it."""

_ASKED: Mapping[Wish, str] = {
    "quiet": "asked to be quiet: it finishes the work in progress and takes no new work, for at "
    "most a week",
    "work": "asked to work",
    "stop": "asked to stop: it finishes the work in progress and ends; its supervisor then "
    "restarts it",
}


def install(registry: PageRegistry) -> None:
    """Register the page Workers and its actions `workers quiet`, `resume` and `stop`."""
    services = registry.services

    def show() -> Shown:
        found = WorkerRegistry(services.client).list()
        living = [worker for worker in found if worker.alive]
        values = {
            "living": [card(worker) for worker in living],
            "gone": [worker for worker in found if not worker.alive],
            "versions": versions(living), "alert": alert(living),
        }  # fmt: skip
        return Shown("workers.html", values)

    def asking(wish: Wish) -> None:
        name = "resume" if wish == "work" else wish

        def act(form: MultiDict[str, str]) -> ActionDone:
            worker = form.get("subject", "")
            WorkerRegistry(services.client).ask(worker, wish)
            return ActionDone(_ASKED[wish], subject=worker, back=registry.address("Workers"))

        registry.action(f"workers {name}", f"/workers/{name}", act)

    registry.page("Workers", "/workers", show, live=True)
    asking("quiet")
    asking("work")
    asking("stop")


def state(worker: RegisteredWorker) -> tuple[str, str]:
    """Return the state of a worker: a grade and a few words."""
    if not worker.alive:
        return "quiet", "gone"
    if worker.beat is None:
        return "warn", "alive, of an older version"
    now = worker.beat.state
    if now == "stopping" or worker.wanted == "stop":
        return "warn", "stopping" if now == "stopping" else f"{now}, to stop"
    if worker.wanted == "quiet" or now == "quiet":
        return "warn", "quiet" if now == "quiet" else f"{now}, to be quiet"
    return "good", now


def card(worker: RegisteredWorker) -> dict[str, Any]:
    """Return the values of one worker."""
    grade, said = state(worker)
    beat = worker.beat
    offset = beat.clock_offset if beat else None
    return {
        "name": worker.name, "grade": grade, "state": said, "wanted": worker.wanted, "beat": beat,
        "seen": worker.seen, "late": worker.seen > LATE_S,
        "skewed": offset is not None and abs(offset) > CLOCK_S,
        "quiet": bool(beat) and "quiet" in {worker.wanted, beat.state if beat else ""},
        # `since` is a time by the worker's clock.
        "busy": [(each.site, each.since + (offset or 0)) for each in beat.busy] if beat else [],
    }  # fmt: skip


def versions(living: Sequence[RegisteredWorker]) -> list[str]:
    """Return the versions that run, if there are several."""
    found = {worker.beat.version if worker.beat else "an older one" for worker in living}
    return sorted(found) if len(found) > 1 else []


def alert(living: Sequence[RegisteredWorker]) -> str:
    """Return a sentence if no worker takes work, else an empty text."""
    if not living:
        return "No worker is alive."
    if all(state(worker)[1] == "quiet" for worker in living):
        return "Every worker is quiet."
    return ""
