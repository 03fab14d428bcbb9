"""Registry of all adapters. To add one, add a module beside this one, a line here, and its name to
shared/config/sites/cms_connections.py, against which the configuration is checked.
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook.sources import (
    cloudevents,
    contentful,
    datocms,
    directus,
    drupal,
    ghost,
    github,
    payload,
    prismic,
    sanity,
    shopify,
    storyblok,
    strapi,
    wagtail,
    webflow,
    websub,
    woocommerce,
    wordpress,
)
from webhook.sources.adapter import Adapter

_ALL: tuple[Adapter, ...] = (
    cloudevents, contentful, datocms, directus, drupal, ghost, github, payload, prismic, sanity,
    shopify, storyblok, strapi, wagtail, webflow, websub, woocommerce, wordpress,
)  # fmt: skip

REGISTRY: Mapping[str, Adapter] = {source.NAME: source for source in _ALL}
