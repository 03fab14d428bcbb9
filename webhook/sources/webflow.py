"""Adapter for Webflow: items of collections, by their slugs (WEBHOOKS 2)."""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms.fields import Fields, date, ident, items, mapping, text
from shared.cms.pages import SentPage
from webhook import auth
from webhook.sources import signatures
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

NAME = "webflow"
MEDIA_TYPES = JSON

GUIDE = Guide(
    title="Webflow",
    credential="the secretKey in the answer that creates the webhook; of an OAuth app, its client"
    " secret",
    place="the secretKey of each webhook",
    steps="""\
1. Create a webhook by the API, for each of collection_item_published, collection_item_unpublished,
   collection_item_deleted and site_publish (those of the dashboard are not signed):
   curl -X POST https://api.webflow.com/v2/sites/SITE_ID/webhooks \\
     -H "authorization: Bearer API_TOKEN" -H "content-type: application/json" \\
     -d '{{"triggerType": "collection_item_published", "url": "{address}"}}'
2. In sitemapd.toml, each secretKey and an address for each collection, by its id:
   secret = ["...", "..."]
   permalinks = {{ 64f1c2ab00000000000000aa = "/blog/{{fieldData.slug}}" }}""",
    sends="the item with its fields, without its address",
    caveats="static pages are not named: publishing the site asks for a reconcile; an item may have"
    " a language of its own, which permalinks name by its id",
    evidence={
        "signature, triggers, fields": checked("webflow-api 3.3.4"),
        "how webhooks are made and signed": documented(
            "https://developers.webflow.com/data/docs/working-with-webhooks"
        ),
    },
    config='permalinks = { COLLECTION_ID = "/blog/{fieldData.slug}" }',
)


def verify(hook: Delivery, keys: SenderSecrets, now: float) -> Proof:
    """Verify `x-webflow-signature`: hex of HMAC-SHA256 over the time in ms, a colon, the body."""
    moment = signatures.moment(signatures.header(hook.headers, "x-webflow-timestamp"))
    given = signatures.hexed(signatures.header(hook.headers, "x-webflow-signature"))
    content = hook.headers["x-webflow-timestamp"].encode() + b":" + hook.body
    signatures.signed(given, content, keys.secrets, "sha256")
    auth.check_age(moment / 1000, now)
    return Proof(None, moment)


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield published and removed items; created or changed items are drafts."""
    said = document(hook.body)
    event, payload = text(said, "triggerType"), mapping(said.get("payload"))
    if event == "site_publish":
        yield ResyncAsked("", "the site was published: its static pages are not named")
        return
    family, _, action = event.rpartition("_")
    if family != "collection_item" or action not in {"published", "unpublished", "deleted"}:
        yield IgnoredDelivery(f"{event[:64] or 'no trigger'}: nothing that makes an item public")
        return
    for item in items(payload.get("items")) or [payload]:
        yield from _item(item, payload, public=action == "published", config=config)


def _item(
    item: Fields, payload: Fields, *, public: bool, config: AdapterContext
) -> Iterable[Outcome]:
    number, locale = ident(item, "id") or ident(item, "_id"), text(item, "cmsLocaleId")
    kind = text(item, "collectionId") or text(payload, "collectionId")
    owner = ("item", locale)
    if number is None:
        yield IgnoredDelivery("an item without an id")
    elif not public or item.get("isArchived") is True:
        # `isDraft` of a published item says that its next version is a draft.
        yield config.gone(kind, number, owner)
    else:
        members = {
            "lastmod": date(item, "lastPublished"),
            "title": text(item, "fieldData.name"),
        }
        fields = {**item, "slug": text(item, "fieldData.slug"), "locale": locale}
        yield from config.page(SentPage(kind, number, fields, locale, members=members, owner=owner))
