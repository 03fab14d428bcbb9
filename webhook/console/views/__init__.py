"""The pages, a module each: `install` registers one in the frame."""

from __future__ import annotations

from webhook.console.views import (
    audit,
    event,
    events,
    failed,
    inspector,
    overview,
    queues,
    replays,
    sites,
)

VIEWS = (overview, sites, events, event, replays, queues, failed, inspector, audit)
