"""Adapter for Shopify: products and collections by their handles (WEBHOOKS 2)."""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms import shopify
from shared.cms.fields import ident, text
from shared.errors import DateError
from shared.sitemap import w3c_dates
from webhook.sources import signatures
from webhook.sources.adapter import (
    JSON,
    AdapterContext,
    Delivery,
    IgnoredDelivery,
    Outcome,
    Proof,
    SenderSecrets,
)
from webhook.sources.guides import Guide, checked, documented
from webhook.sources.payload_fields import document

NAME = "shopify"
MEDIA_TYPES = JSON

GUIDE = Guide(
    title="Shopify",
    credential="Settings > Notifications > Webhooks shows it below the list; for an app, its client"
    " secret",
    place="the secret that Settings > Notifications > Webhooks shows",
    steps="""\
1. Settings > Notifications > Webhooks > Create webhook, format JSON, URL  {address}
   for each of: product creation, update, deletion; collection creation, update, deletion.
2. Copy the secret shown there into sitemapd.toml.""",
    sends="products and collections with their handles; these are listed at /products/{handle} and"
    " /collections/{handle} unless permalinks say otherwise",
    caveats="Shopify repeats a failed delivery eight times within four hours, then it is lost;"
    " pages and articles have no webhooks: import them",
    evidence={
        "signature, headers": checked("@shopify/shopify-api 15.0.0"),
        "clicks, topics, repeats": documented(
            "https://help.shopify.com/en/manual/orders/notifications/webhooks",
            "https://shopify.dev/docs/api/webhooks/latest",
            "https://shopify.dev/changelog/updates-to-webhook-retry-mechanism",
        ),
    },
)


def verify(hook: Delivery, keys: SenderSecrets, _now: float) -> Proof:
    """Verify `X-Shopify-Hmac-Sha256`: base64 of HMAC-SHA256 over the body. Raises
    UnauthorizedError.

    The trigger time is not signed, but lets a repeated delivery lose against a later one; capped at
    the present, it gives an attacker no more than the body does.
    """
    given = signatures.based(signatures.header(hook.headers, "x-shopify-hmac-sha256"))
    signatures.signed(given, hook.body, keys.secrets, "sha256")
    try:
        moment = w3c_dates.epoch_ms(hook.headers.get("x-shopify-triggered-at", ""))
    except DateError:
        return Proof(hook.headers.get("x-shopify-webhook-id"))
    return Proof(hook.headers.get("x-shopify-webhook-id"), moment)


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield a product or collection that is in the online shop, or its delete."""
    topic = hook.headers.get("x-shopify-topic", "")
    family, _, action = topic.partition("/")
    kind = shopify.KINDS.get(family)
    if kind is None or action not in {"create", "update", "delete"}:
        # Orders and customers are not read.
        yield IgnoredDelivery(f"{topic[:64] or 'no topic'}: not about a product or a collection")
        return
    said = document(hook.body)
    number = ident(said, "id")
    if number is None:
        yield IgnoredDelivery(f"a {kind} without an id")
    elif action == "delete" or not _is_public(kind, text(said, "status"), said.get("published_at")):
        yield config.gone(kind, number)
    else:
        yield from config.page(shopify.page(family, number, said))


def _is_public(kind: str, status: str, published: object) -> bool:
    return bool(published) and (kind != "product" or status in {"active", ""})
