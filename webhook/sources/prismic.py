"""Adapter for Prismic, which reports that documents changed, but not how or at which address."""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms.fields import text
from webhook.auth import any_equal
from webhook.problems import RefusedError, UnauthorizedError
from webhook.sources.adapter import (
    JSON,
    AdapterContext,
    Delivery,
    IgnoredDelivery,
    Outcome,
    Proof,
    ResyncAsked,
    SenderSecrets,
)
from webhook.sources.guides import Guide, checked, documented
from webhook.sources.payload_fields import document

NAME = "prismic"
MEDIA_TYPES = JSON

GUIDE = Guide(
    title="Prismic",
    credential="you choose it: 16 characters or more; Prismic sends it within the body",
    place="the Secret of the webhook",
    steps="""\
1. Settings > Webhooks > Create a webhook.
   URL       {address}
   Secret    {secret}
   Triggers  a document is published, a document is unpublished""",
    sends="the ids of documents that changed, published and unpublished alike",
    caveats="each delivery asks for a reconcile: configure where from; Prismic disables a webhook"
    " after five answers in a row that are not 200",
    evidence={
        "types, where the secret is": checked("@prismicio/client 7.22.0"),
        "clicks, repeats": documented("https://prismic.io/docs/webhooks"),
    },
    chosen=True,
)


def verify(hook: Delivery, keys: SenderSecrets, _now: float) -> Proof:
    """Verify `secret` in the body. Raises UnauthorizedError."""
    try:
        given = text(document(hook.body), "secret")
    except RefusedError:
        raise UnauthorizedError("body-unreadable") from None
    if not given:
        raise UnauthorizedError("credentials-missing")
    if not any_equal([given.encode("utf-8", "replace")], keys.secrets):
        raise UnauthorizedError("secret-wrong")
    return Proof()


def translate(hook: Delivery, _config: AdapterContext) -> Iterable[Outcome]:
    """Yield a resync for every update: a document may have been added, changed or removed."""
    kind = text(document(hook.body), "type")
    if kind == "api-update":
        yield ResyncAsked("", "Prismic names documents, not their addresses or what became of them")
    else:
        yield IgnoredDelivery(f"{kind[:64] or 'no type'}: not about documents")
