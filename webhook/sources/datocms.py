"""Adapter for DatoCMS: records, with their previous state (WEBHOOKS 2)."""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms.fields import Fields, date, ident, items, mapping, moment, text
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
from webhook.sources.guides import Guide, checked, documented
from webhook.sources.payload_fields import document

NAME = "datocms"
MEDIA_TYPES = JSON

GUIDE = Guide(
    title="DatoCMS",
    credential='user and password in one, "sitemapd:..." with 16 characters or more in all',
    place="user and password of HTTP basic auth",
    steps="""\
1. Project settings > Webhooks > Add a new webhook.
   URL              {address}
   HTTP basic auth  user and password as in  {secret}
   Triggers         Record: publish, unpublish, delete; for models without drafts also create,
                    update
   Auto-retry on, no custom payload
2. In sitemapd.toml, an address for each model that is a page:
   permalinks = {{ blog_post = "/{{locale}}/blog/{{slug}}" }}""",
    sends="the record in every language, without its address",
    caveats="nothing is signed: use https; a record has a page in each language in which its slug"
    " is set",
    evidence={
        "triggers, settings, dates": checked("@datocms/cma-client 5.8.1"),
        "clicks, the form of a delivery": documented(
            "https://www.datocms.com/docs/content-management-api/resources/webhook-call"
        ),
    },
    config='permalinks = { blog_post = "/blog/{slug}" }',
    chosen=True,
)


def verify(hook: Delivery, keys: SenderSecrets, _now: float) -> Proof:
    """Verify HTTP basic auth: DatoCMS signs nothing. The call's id is in the body."""
    signatures.password(hook.headers, keys.secrets)
    said = document(hook.body)
    number = ident(said, "webhook_call_id")
    return Proof(None if number is None else str(number), moment(said, "event_triggered_at"))


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield a record in each of its languages."""
    said = document(hook.body)
    event, entity = text(said, "event_type"), mapping(said.get("entity"))
    number = ident(entity, "id")
    if text(said, "entity_type") != "item" or number is None:
        yield IgnoredDelivery("not about a record")
        return
    kind = _model(entity, items(said.get("related_entities")))
    fields, before = mapping(entity.get("attributes")), mapping(said.get("previous_entity"))
    slugs = _slugs(fields, config) or dict.fromkeys(config.connection.locales or ("",))
    public = event == "publish" or (
        # Models without drafts send no `publish`.
        event in {"create", "update"} and text(entity, "meta.status") == "published"
    )
    if not public and event not in {"unpublish", "delete"}:
        yield IgnoredDelivery(f"{event[:64] or 'no event'}: a draft")
        return
    for locale, slug in (_slugs(mapping(before.get("attributes")), config) | slugs).items():
        if not public or locale not in slugs or not slug:
            yield config.gone(kind, number, ("item", locale))
            continue
        members = {
            "lastmod": date(entity, "meta.updated_at"),
            "published": date(entity, "meta.first_published_at"),
        }
        shown = {n: _of(v, locale) for n, v in fields.items()} | {"locale": locale}
        yield from config.page(
            SentPage(kind, number, shown, locale, members=members, owner=("item", locale))
        )


def _model(entity: Fields, related: list[Fields]) -> str:
    """Return the API key of the record's model, or its id if the key is not sent."""
    model = text(entity, "relationships.item_type.data.id")
    for other in related:
        if text(other, "type") == "item_type" and text(other, "id") == model:
            return text(other, "attributes.api_key") or model
    return model


def _slugs(fields: Fields, config: AdapterContext) -> dict[str, object]:
    """Return the slug of each language, empty where it has none; one under `` if not localized."""
    slug = fields.get("slug")
    if isinstance(slug, dict):
        return {**dict.fromkeys(config.connection.locales), **slug}
    return {"": slug or fields} if fields else {}


def _of(value: object, locale: str) -> object:
    return value[locale] if isinstance(value, dict) and locale in value else value
