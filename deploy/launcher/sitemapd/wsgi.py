"""WSGI entry point of an installed sitemapd:
`granian --interface wsgi --factory sitemapd.wsgi:app`.
"""

from __future__ import annotations

from sitemapd import activate

activate()

from webhook.wsgi import app  # noqa: E402  # found by `activate`

__all__ = ["app"]
