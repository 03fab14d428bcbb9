"""Command `python -m worker.main`: one worker process, or the Celery schedule."""

from __future__ import annotations

import argparse
from pathlib import Path

from shared.lean_imports import importing_less, leave_out
from shared.telemetry import tracing

THREADS = 4


def main() -> None:
    """Run until SIGTERM; batches in progress are finished first."""
    parser = argparse.ArgumentParser(description="sitemapd worker")
    parser.add_argument("--config", type=Path, required=True, help="sitemapd.toml")
    parser.add_argument("--schedule", action="store_true", help="run the schedule, not a worker")
    parser.add_argument("--threads", type=int, default=THREADS, help="sites worked on at once")
    parser.add_argument(
        "--no-reconcile", action="store_true", help="leave what a resync asks for to others"
    )
    parser.add_argument(
        "--no-notify", action="store_true", help="leave telling search engines to others"
    )
    options = parser.parse_args()
    leave_out(*(() if tracing.wanted() else (tracing.PACKAGE,)))
    from shared import task_names
    from shared.config.settings import load
    from shared.telemetry import logs

    with importing_less("yaml"):  # kombu would load it for a serializer that is not used
        from worker.celery_app import create_worker_app

    settings = load(options.config)
    logs.configure(level=settings.log_level, traced_as="worker", streams=True)
    app = create_worker_app(settings)
    if options.schedule:
        # In memory: both tasks may run at any time, so there is no schedule state to keep.
        app.start(["beat", "--scheduler=celery.beat:Scheduler", "--loglevel=WARNING", "--pidfile="])
        return
    # Imported late: the schedule does not need these, and starts in half the time.
    from celery.utils.nodenames import default_nodename, host_format

    from shared.store.operations.worker_registry import consumer_name
    from worker.runtime import Runtime
    from worker.tasks import register, soon

    consumer = consumer_name()
    reconciles = not options.no_reconcile
    notifies = not options.no_notify
    runtime = Runtime(
        settings, consumer, reconciles=reconciles, on_resync=soon(app, task_names.RECONCILE),
        on_publish=None if notifies else soon(app, task_names.NOTIFY),
    )  # fmt: skip
    queues = [task_names.QUEUE]
    queues += [task_names.RECONCILE_QUEUE] * reconciles + [task_names.NOTIFY_QUEUE] * notifies
    register(app, runtime, queues, options.threads)
    # Not app.worker_main: it loads the command line of Celery with its interactive shell, 0.15 s.
    app.Worker(
        hostname=host_format(default_nodename(f"{consumer}@%h")), pool_cls="threads",
        concurrency=options.threads, loglevel="WARNING", queues=queues, without_gossip=True,
        without_mingle=True, no_color=False, quiet=False,
    ).start()  # fmt: skip


if __name__ == "__main__":
    main()
