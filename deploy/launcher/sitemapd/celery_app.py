"""Celery application of an installed sitemapd: `celery -A sitemapd.celery_app worker`."""

from __future__ import annotations

from sitemapd import activate

activate()

from worker.celery_app import app  # noqa: E402  # found by `activate`

__all__ = ["app"]
