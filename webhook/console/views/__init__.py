"""The pages of the console, one module with `install` for each. Helpers shared by several pages are
in webhook/console.
"""

from __future__ import annotations

from webhook.console.views import (
    audit,
    checks,
    event,
    events,
    failed,
    files,
    index_status,
    inspector,
    notifications,
    overview,
    queues,
    replays,
    sites,
    workers,
)

VIEWS = (
    overview,
    sites,
    events,
    event,
    replays,
    queues,
    failed,
    files,
    inspector,
    checks,
    workers,
    notifications,
    index_status,
    audit,
)
