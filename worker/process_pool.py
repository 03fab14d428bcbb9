"""A worker of Celery with processes (`-P prefork`): each of them is a worker of its own.

Clients, loops and the heartbeat do not survive a fork, so the first process, which only takes the
messages, has none; each other process begins them for itself, under a name of its own.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from celery import Celery, signals

from shared.config.live import LiveSettings
from shared.store.operations.config_follower import ConfigFollower
from worker.composition import build
from worker.runtime import Runtime
from worker.tasks import register

START_S = 20.0
"""Seconds in which a process has to start; Celery ends it after 4, too few for a busy machine."""

_LOOK_S = 0.1


def compose_processes(
    app: Celery, live: LiveSettings, name: str, *, reconciles: bool, notifies: bool
) -> None:
    """Add to `app` the tasks of the workers `name`-1, `name`-2 and so on, one in each process.

    Dropped messages are logged, and not counted: the first process has no client. A quiet worker
    leaves the messages that it is handed to the sweep of another.
    """
    own: list[tuple[Runtime, ConfigFollower]] = []
    parent, (ending, alive) = os.getpid(), os.pipe()
    app.conf.worker_proc_alive_timeout = START_S
    register(app, lambda: own[0][0])

    @signals.worker_ready.connect(weak=False)
    def ready(**_: object) -> None:
        # Celery's own handler would start all anew; each process looks at the file by itself.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    @signals.worker_shutting_down.connect(weak=False)
    def stopping(**_: object) -> None:
        os.close(alive)

    @signals.worker_process_init.connect(weak=False)
    def begin(**_: object) -> None:
        os.close(alive)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        who = f"{name}-{_number()}"
        runtime, follower = build(app, live, who, reconciles=reconciles, notifies=notifies)
        own.append((runtime, follower))
        runtime.start(1, look_at_file=follower.look)
        threading.Thread(
            target=_stop_with, args=(parent, ending, runtime.stop), name="parent", daemon=True
        ).start()

    @signals.worker_process_shutdown.connect(weak=False)
    def end(**_: object) -> None:
        for runtime, follower in own:
            runtime.stop()
            runtime.end()
            follower.end()


def _number() -> int:
    """Return the number of this process in its pool: that of the one which it replaces, if any, as
    the name of a worker must be the same after a restart.
    """
    from billiard.process import current_process

    process: Any = current_process()
    return int(process.index) + 1


def _stop_with(parent: int, ending: int, stop: Callable[[], None]) -> None:
    """Call `stop` once `parent` closes its end of the pipe `ending`, so that work at hand is
    finished and no more begun; end this process at once if `parent` is gone. The processes of the
    next one will have the same names, and nobody hands anything to this one any more.
    """
    os.read(ending, 1)
    stop()
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), signal.SIGKILL)
