"""Command `python -m worker.main`: one worker process, or the Celery schedule."""

from __future__ import annotations

import argparse
import gc
import os
import signal
from pathlib import Path

from shared.lean_imports import importing_less, leave_out
from shared.telemetry import tracing

GARBAGE_AT = 50_000
"""Objects more than were freed since, at which cycles are looked for: a batch of 500 events has
thousands that are no garbage. Python's own 700 take a sixth of the time of a batch.
"""


def main() -> None:
    """Run until SIGTERM; batches in progress are finished first."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the configuration is about to be read anyway
    parser = argparse.ArgumentParser(description="sitemapd worker")
    parser.add_argument("--config", type=Path, required=True, help="sitemapd.toml")
    parser.add_argument("--schedule", action="store_true", help="run the schedule, not a worker")
    parser.add_argument("--threads", type=int, help="sites worked on at once")
    parser.add_argument(
        "--no-reconcile", action="store_true", help="leave what a resync asks for to others"
    )
    parser.add_argument(
        "--no-notify", action="store_true", help="leave telling search engines to others"
    )
    parser.add_argument("--json", action="store_true", help="log lines as JSON on a terminal, too")
    parser.add_argument("--host", default="", help="name of this host in the targets of sites")
    options = parser.parse_args()
    leave_out(*(() if tracing.wanted() else (tracing.PACKAGE,)))
    from shared.config.live import LiveSettings
    from shared.config.sites.targets import HOST
    from shared.telemetry import logs

    with importing_less("yaml"):  # kombu would load it for a serializer that is not used
        from worker.celery_app import create_worker_app

    if options.host:
        os.environ[HOST] = options.host
    live = LiveSettings(options.config)
    settings = live.current
    logs.configure(
        json_lines=options.json or None, level=settings.log_level, traced_as="worker", streams=True
    )
    app = create_worker_app(settings)
    from shared.store.operations.config_follower import ConfigFollower
    from shared.store.operations.config_reports import process_name

    if options.schedule:
        from shared.store.connection import PATIENCE_S, connect

        follower = ConfigFollower(
            live, connect(settings.redis_url, PATIENCE_S), f"schedule {process_name()}"
        )
        signal.signal(signal.SIGHUP, lambda *_: follower.ask())
        follower.start()
        app.start([
            "beat", "--scheduler=worker.schedule:PatientScheduler", "--loglevel=WARNING",
            "--pidfile=",
        ])  # fmt: skip
        return
    # Imported late: the schedule does not need these, and starts in half the time.
    from celery.utils.nodenames import default_nodename, host_format

    from shared.store.operations.worker_registry import consumer_name
    from worker.composition import THREADS, compose

    threads = options.threads or THREADS
    gc.set_threshold(GARBAGE_AT)
    consumer = consumer_name()
    queues, follower = compose(
        app, live, consumer, threads,
        reconciles=not options.no_reconcile, notifies=not options.no_notify,
    )  # fmt: skip
    signal.signal(signal.SIGHUP, lambda *_: follower.ask())
    # Not app.worker_main: it loads the command line of Celery with its interactive shell, 0.15 s.
    app.Worker(
        hostname=host_format(default_nodename(f"{consumer}@%h")), pool_cls="threads",
        concurrency=threads, loglevel="WARNING", queues=queues, without_gossip=True,
        without_mingle=True, no_color=False, quiet=False,
    ).start()  # fmt: skip


if __name__ == "__main__":
    main()
