"""Command `python -m worker.main`: one worker process, or the Celery schedule."""

from __future__ import annotations

import argparse
from pathlib import Path

from shared import logs, task_names
from shared.config.settings import load
from worker.celery_app import create_worker_app

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
    settings = load(options.config)
    logs.configure(level=settings.log_level, traced_as="worker", streams=True)
    app = create_worker_app(settings)
    if options.schedule:
        # In memory: both tasks may run at any time, so there is no schedule state to keep.
        app.start(["beat", "--scheduler=celery.beat:Scheduler", "--loglevel=WARNING", "--pidfile="])
        return
    # Imported late: the schedule does not need these, and starts in half the time.
    from worker.runtime import Runtime, consumer_name
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
    app.worker_main(
        [
            "worker", "--pool=threads", f"--concurrency={options.threads}", "--loglevel=WARNING",
            "--without-gossip", "--without-mingle", f"--queues={','.join(queues)}",
            f"--hostname={consumer}@%h",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    main()
