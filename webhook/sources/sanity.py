"""Adapter for Sanity: a body shaped by the webhook's projection, and the operation in a header."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from shared.cms import sanity
from shared.cms.fields import ident, text
from shared.errors import DateError
from shared.sitemap import w3c_dates
from webhook import auth
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
from webhook.sources.guides import Guide, checked, documented, literal
from webhook.sources.payload_fields import document

NAME = "sanity"
MEDIA_TYPES = JSON

GUIDE = Guide(
    title="Sanity",
    credential="you choose it: 16 characters or more",
    place="the Secret of the webhook",
    steps=f"""\
1. sanity.io/manage > project > API > Webhooks > Create webhook.
   URL         {{address}}
   Trigger on  Create, Update, Delete; Drafts and Versions off
   Filter      _type in ["post", "page"]
   Projection  {literal(sanity.PROJECTION)}
   HTTP method POST; Secret  {{secret}}
2. In sitemapd.toml:  permalinks = {{{{ post = "/blog/{{{{slug}}}}", page = "/{{{{slug}}}}" }}}}""",
    sends="what the projection says; with a `url` in it no permalink is needed",
    caveats="more than what is above is read by permalinks only; two retries within a minute,"
    " then the event is lost",
    evidence={
        "projection and filter": checked("groq-js 2.0.1"),
        "signature": checked("@sanity/webhook 4.0.4"),
        "clicks, headers, retries": documented(
            "https://www.sanity.io/docs/webhooks",
            "https://www.sanity.io/docs/changelog/50ec6abf-fe0c-475b-ae72-314148860132",
        ),
    },
    config='permalinks = { post = "/blog/{slug}" }',
    chosen=True,
)


def verify(hook: Delivery, keys: SenderSecrets, now: float) -> Proof:
    """Verify `sanity-webhook-signature: t=ms,v1=base64url`, over time, full stop and body."""
    said = signatures.pairs(signatures.header(hook.headers, "sanity-webhook-signature"))
    moment = signatures.moment(said.get("t", ""))
    content = said["t"].encode() + b"." + hook.body
    signatures.signed(signatures.based(said.get("v1", "")), content, keys.secrets, "sha256")
    auth.check_age(moment / 1000, now)
    with suppress(DateError):
        # Deliveries come in any order; this is when the document changed.
        moment = w3c_dates.epoch_ms(hook.headers.get("sanity-transaction-time", ""))
    return Proof(hook.headers.get("idempotency-key"), moment)


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield the document, or its delete: unpublishing deletes it."""
    said = document(hook.body)
    operation = hook.headers.get("sanity-operation") or text(said, "operation")
    number = ident(said, "_id") or hook.headers.get("sanity-document-id")
    if operation not in {"create", "update", "delete"} or not number:
        yield IgnoredDelivery(
            "no operation or no _id: is the projection the one of `sitemapd connect`?"
        )
    elif sanity.is_draft(number):
        yield IgnoredDelivery("a draft")
    elif operation == "delete":
        yield config.gone(text(said, "_type"), number, owner=sanity.OWNER)
    else:
        yield from config.page(sanity.page(number, said))
