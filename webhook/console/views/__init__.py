"""The pages, a module each: `install` registers one in the frame."""

from __future__ import annotations

from webhook.console.views import audit, files, inspector, notifications, overview, sites, workers

VIEWS = (overview, sites, files, inspector, workers, notifications, audit)
