"""Names of the Celery messages between webhook and worker, which never import each other."""

from __future__ import annotations

APP = "sitemapd"
QUEUE = "sitemapd"

WAKE = "sitemapd.wake"
"""Argument: the site's name. Says only that there may be work; duplicates and loss are harmless."""

RECONCILE_QUEUE = "sitemapd.reconcile"
RECONCILE = "sitemapd.reconcile"
"""Argument: the site's name, or none for all sites. Says only that there may be a scope to compare
with its source; its separate queue keeps it from delaying wake-ups.
"""

NOTIFY_QUEUE = "sitemapd.notify"
NOTIFY = "sitemapd.notify"
"""Argument: the site's name. Says only that there may be notifications to send."""

FOLLOW_QUEUE = "sitemapd.follow"
FOLLOW = "sitemapd.follow"
"""Argument: the site's name. Says only that a site with several targets was published; a host has a
queue of its own, `follow_queue`.
"""

SWEEP = "sitemapd.sweep"
"""No arguments. Finds every site with work left, whatever messages were lost."""

TIDY = "sitemapd.tidy"
"""No arguments. Purges old tombstones, compacts nearly empty shards."""

REFRESH = "sitemapd.refresh"
"""No arguments. Checks every news file: each article leaves at its own time (PROTOCOL W4)."""

SWEEP_S = 2.0
TIDY_S = 600.0
REFRESH_S = 3600.0
RECONCILE_S = 3600.0


def follow_queue(host: str) -> str:
    """The queue of the workers of `host`, for the targets that only they write; of all workers for
    an empty name.
    """
    return f"{FOLLOW_QUEUE}.{host}" if host else FOLLOW_QUEUE


def broker_options(timeout: float) -> dict[str, object]:
    """Celery's options for a Redis broker, `timeout` in seconds (DESIGN 9: measured)."""
    return {
        "socket_timeout": timeout,
        "socket_connect_timeout": min(timeout, 1.0),
        "visibility_timeout": 30,
        "unacked_restore_interval": 2,
        "unacked_restore_throttle": 1,
        "queue_order_strategy": "sorted",
    }


def broker_url(redis_url: str) -> str:
    """The address of the broker in kombu's spelling: `redis+socket://` for `unix://`, and the
    database of a socket as its virtual host.
    """
    if redis_url.startswith("unix://"):
        return "redis+socket://" + redis_url.removeprefix("unix://").replace(
            "?db=", "?virtual_host="
        )
    return redis_url
