"""Composition of a worker: its runtime behind the tasks of a Celery application."""

from __future__ import annotations

from collections.abc import Collection

from celery import Celery

from shared import task_names
from shared.config.live import LiveSettings
from shared.config.sites.targets import host_name
from shared.store.operations.config_follower import ConfigFollower
from worker.runtime import Runtime
from worker.tasks import accompany, register, soon, wake_hosts

THREADS = 4
"""Sites that one worker processes at once, unless it is told otherwise."""


def compose(
    app: Celery, live: LiveSettings, consumer: str, threads: int,
    *, reconciles: bool, notifies: bool, queues: Collection[str] = (),
) -> tuple[list[str], ConfigFollower]:  # fmt: skip
    """Add to `app` the tasks of the worker `consumer`; return the queues that it listens to, and
    what follows changes of its configuration. `queues`: those that were chosen for it.

    Reconciles and notifications that it does not carry out itself are left to other workers.
    """
    runtime, follower = build(app, live, consumer, reconciles=reconciles, notifies=notifies)
    own = [task_names.QUEUE]
    if any(site.several_targets for site in live.current.sites.values()):
        own += [task_names.follow_queue(""), task_names.follow_queue(host_name())]
    own += [task_names.RECONCILE_QUEUE] * reconciles + [task_names.NOTIFY_QUEUE] * notifies
    own = [*queues] or own
    register(app, lambda: runtime)
    accompany(runtime, own, threads, follower)
    return own, follower


def build(
    app: Celery, live: LiveSettings, consumer: str, *, reconciles: bool, notifies: bool
) -> tuple[Runtime, ConfigFollower]:
    """Return the runtime of the worker `consumer`, which sends its messages by `app`, and what
    follows changes of its configuration.
    """
    runtime = Runtime(
        live.current, consumer, reconciles=reconciles, on_resync=soon(app, task_names.RECONCILE),
        on_publish=None if notifies else soon(app, task_names.NOTIFY),
        on_commit=lambda site, hosts: wake_hosts(app, site, hosts),
    )  # fmt: skip
    return runtime, ConfigFollower(live, runtime.client, f"worker {consumer}", runtime.follow)
