"""Adapter for WooCommerce: products with their permalinks, built on delivery (WEBHOOKS 1.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shared.cms.fields import date, ident, images, items, text
from shared.cms.pages import SentPage
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
from webhook.sources.guides import Guide, documented
from webhook.sources.payload_fields import document

NAME = "woocommerce"
_FORM = "application/x-www-form-urlencoded"
MEDIA_TYPES = JSON | {_FORM}

GUIDE = Guide(
    title="WooCommerce",
    credential="you choose it: 16 characters or more",
    place="the Secret of the webhook",
    steps="""\
1. WooCommerce > Settings > Advanced > Webhooks > Add webhook, status Active,
   Delivery URL  {address}
   Secret        {secret}
   API version   WP REST API Integration v3
   one webhook for each topic: Product created, updated, deleted, restored.""",
    sends="the product with its address and images; a deleted one by its id",
    caveats="WordPress refuses private addresses and ports other than 80, 443 and 8080; after more"
    " than five failures in a row the webhook is disabled; bodies carry no time, so a captured one"
    " can be sent again",
    evidence={
        "all": documented(
            "https://developer.woocommerce.com/docs/apis/rest-api/v3/webhooks/",
            "https://github.com/woocommerce/woocommerce/blob/trunk/plugins/woocommerce/includes/class-wc-webhook.php",
            "https://developer.wordpress.org/reference/functions/wp_http_validate_url/",
        )
    },
    chosen=True,
)

_PING = re.compile(rb"webhook_id=[0-9]{1,20}")
_PREVIEW = re.compile(r"[?&](?:p|post_type|preview)=|__trashed(?:/|-|$)")
_TOPICS = frozenset({"created", "updated", "restored", "deleted"})


def is_ping(hook: Delivery) -> bool:
    """Return True for the unsigned ping on saving a webhook, which needs a 200. It changes nothing,
    so any client may send it, to any site.
    """
    kind = hook.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == _FORM and _PING.fullmatch(hook.body) is not None


def verify(hook: Delivery, keys: SenderSecrets, _now: float) -> Proof:
    """Verify `X-WC-Webhook-Signature`: base64 of HMAC-SHA256 over the body."""
    given = signatures.based(signatures.header(hook.headers, "x-wc-webhook-signature"))
    signatures.signed(given, hook.body, keys.secrets, "sha256")
    # The same for all deliveries of one webhook within a second: their bodies distinguish them.
    return Proof(hook.headers.get("x-wc-webhook-delivery-id"))


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield a product that is public, or its delete; orders and customers are not read."""
    topic = hook.headers.get("x-wc-webhook-topic", "")
    family, _, action = topic.partition(".")
    if family != "product" or action not in _TOPICS:
        yield IgnoredDelivery(f"{topic[:64] or 'no topic'}: not about a product")
        return
    said = document(hook.body)
    number = ident(said, "id")
    loc = text(said, "permalink")
    if number is None:
        yield IgnoredDelivery("a product without an id")
    elif (
        action == "deleted"
        or text(said, "status") != "publish"
        or text(said, "catalog_visibility") == "hidden"
        or text(said, "post_password")
        or _PREVIEW.search(loc)
    ):
        yield config.gone("product", number)
    else:
        modified = date(said, "date_modified_gmt")
        members = {
            "lastmod": modified,
            "published": date(said, "date_created_gmt"),
            "title": text(said, "name"),
            "images": images([text(image, "src") for image in items(said.get("images"))]),
        }
        yield from config.page(SentPage("product", number, said, loc=loc or None, members=members))
