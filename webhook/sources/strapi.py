"""Adapter for Strapi 5 (WEBHOOKS 1.6): judged by the event name, since the dates are unreliable.

Row ids change with every publication, so a page is identified by document and language. A published
page gets `update` with `publishedAt: null` when its draft is edited, and remains published.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms import strapi
from shared.cms.fields import mapping, moment, text
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
from webhook.sources.guides import RUN, Guide, documented
from webhook.sources.payload_fields import document

NAME = "strapi"
MEDIA_TYPES = JSON

GUIDE = Guide(
    title="Strapi 5",
    credential="you choose it: 16 characters or more, sent as a header",
    place="the header Authorization of the webhook",
    steps="""\
1. Settings > Webhooks > Create new webhook.
   Url      {address}
   Headers  Authorization: Bearer {secret}
   Events   Entry: all of them
2. In sitemapd.toml, an address for each type that is a page:
   permalinks = {{ article = "/{{locale}}/blog/{{slug}}" }}""",
    sends="the entry without its address, and without relations",
    caveats="nothing is signed or repeated, and what Strapi had queued is lost when it restarts:"
    " reconcile now and then; a type without a permalink is ignored",
    evidence={
        "events, header, deliveries": RUN,
        "clicks": documented("https://docs.strapi.io/cms/backend-customization/webhooks"),
        "what a restart loses": documented(
            "https://github.com/strapi/strapi/blob/develop/packages/core/core/src/services/webhook-runner.ts"
        ),
    },
    config='permalinks = { article = "/{locale}/blog/{slug}" }',
    chosen=True,
)


def verify(hook: Delivery, keys: SenderSecrets, now: float) -> Proof:
    """Verify a header that the administrator sets: Strapi signs nothing. Raises UnauthorizedError.

    It sends five deliveries at a time, which overtake each other; `createdAt` is when each was
    begun. It is used only within TOLERANCE_S of `now` (seconds since 1970), as the time of a signed
    delivery.
    """
    signatures.token(hook.headers, keys.secrets)
    begun = moment(document(hook.body), "createdAt")
    if begun is None or abs(begun / 1000 - now) > auth.TOLERANCE_S:
        return Proof()
    return Proof(None, begun)


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield `publish`, `unpublish` and `delete`; of types without drafts `create` and `update`."""
    said = document(hook.body)
    event, entry = text(said, "event"), mapping(said.get("entry"))
    kind = text(said, "model")
    page = strapi.page(kind, entry)
    if not event.startswith("entry.") or not kind or page is None:
        yield IgnoredDelivery(f"{event[:64] or 'no event'}: not about an entry")
        return
    public = text(entry, "publishedAt") != ""
    if event == "entry.publish" or (event in {"entry.create", "entry.update"} and public):
        yield from config.page(page)
    elif event in {"entry.unpublish", "entry.delete"}:
        # A draft's row names an address at which the page never was.
        fields = entry if public else None
        yield config.gone(kind, page.ident, page.owned, fields=fields)
    else:
        yield IgnoredDelivery(f"{event[:64]}: a draft")
