"""Adapter for the WordPress plugin of this project: one request for each save (WEBHOOKS 1.1)."""

from __future__ import annotations

from collections.abc import Iterable

from webhook.sources import standard
from webhook.sources.adapter import AdapterContext, Delivery, Outcome
from webhook.sources.guides import RUN_ALWAYS, Guide, documented
from webhook.sources.standard import MEDIA_TYPES, verify

__all__ = ["GUIDE", "MEDIA_TYPES", "NAME", "translate", "verify"]

NAME = "wordpress"

GUIDE = Guide(
    title="WordPress",
    credential="a Standard Webhooks secret of this site; `sitemapd secret` makes one",
    place="the Secret under Settings > sitemapd",
    steps="""\
1. Install the plugin sitemapd (deploy/wordpress) and activate it.
2. Settings > sitemapd
   Address  {origin}
   Site     {site}
   Secret   {secret}""",
    sends="one request for each save: every page that changed, moved or went, with old addresses",
    caveats="WordPress refuses private addresses and ports other than 80, 443 and 8080: give the"
    " service a path on the site's own host",
    evidence={
        "plugin, deliveries": RUN_ALWAYS,
        "refused addresses and ports": documented(
            "https://developer.wordpress.org/reference/functions/wp_http_validate_url/"
        ),
    },
)


def translate(hook: Delivery, _config: AdapterContext) -> Iterable[Outcome]:
    """Yield the plugin's events; addresses that are never public become deletes by id."""
    return standard.changes(hook)
