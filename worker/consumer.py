"""Name of a worker as a consumer of inboxes."""

from __future__ import annotations

import os
import socket


def consumer_name() -> str:
    """Return the consumer name of this process: the same after a restart, so that the worker finds
    the events it held before.
    """
    return os.environ.get("SITEMAPD_CONSUMER") or socket.gethostname()
