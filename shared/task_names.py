"""The names by which webhook and worker know each other's messages: neither imports the other."""

from __future__ import annotations

APP = "sitemapd"
QUEUE = "sitemapd"

WAKE = "sitemapd.wake"
"""Arguments: the site's name. Says only that there may be work; doubles and losses are harmless."""

RECONCILE_QUEUE = "sitemapd.reconcile"
RECONCILE = "sitemapd.reconcile"
"""Arguments: the site's name, or nothing for all sites. Says only that there may be something to
compare with its source; in a queue of its own, so that it stands in no wake-up's way.
"""

NOTIFY_QUEUE = "sitemapd.notify"
NOTIFY = "sitemapd.notify"
"""Arguments: the site's name. Says only that there may be something to tell search engines."""

SWEEP = "sitemapd.sweep"
"""No arguments. Finds every site with work left, whoever forgot it."""

TIDY = "sitemapd.tidy"
"""No arguments. Forgets old tombstones, drains nearly empty shards."""

REFRESH = "sitemapd.refresh"
"""No arguments. Checks every news file: each article leaves at its hour (PROTOCOL W4)."""

SWEEP_S = 2.0
TIDY_S = 600.0
REFRESH_S = 3600.0
RECONCILE_S = 3600.0


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
    """The address of the broker in kombu's spelling: `unix://` is `redis+socket://` there, and the
    database of a socket its virtual host.
    """
    if redis_url.startswith("unix://"):
        return "redis+socket://" + redis_url.removeprefix("unix://").replace(
            "?db=", "?virtual_host="
        )
    return redis_url
