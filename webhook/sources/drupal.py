"""Adapter for Drupal's module Webhooks: entities of core or JSON:API (WEBHOOKS 1.10)."""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms import drupal
from shared.cms.fields import mapping, text
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

NAME = "drupal"
MEDIA_TYPES = JSON | {"application/vnd.api+json", "application/hal+json"}

GUIDE = Guide(
    title="Drupal",
    credential="you choose it: 16 characters or more",
    place="the Secret of the webhook",
    steps="""\
1. composer require drupal/webhooks; drush en webhooks
2. Configuration > Web services > Webhooks > Add webhook, type outgoing.
   Payload URL   {address}
   Secret        {secret}
   Content type  application/json
   Events        Node: create, update, delete""",
    sends="the node with its path alias; /node/ID is listed where it has none",
    caveats="Pathauto may set an alias after the event: save again, or reconcile; addresses with a"
    ' language prefix need permalinks, "article:de" = "/de{path.alias}"; each translation is a'
    " page of its own",
    evidence={
        "all": documented(
            "https://www.drupal.org/project/webhooks", "https://github.com/sanduhrs/drupal-webhooks"
        )
    },
    chosen=True,
)

_ACTIONS = frozenset({"create", "insert", "update", "delete"})


def verify(hook: Delivery, keys: SenderSecrets, _now: float) -> Proof:
    """Verify `X-Hub-Signature-256`, or `X-Hub-Signature` with the digest that it names."""
    said = hook.headers.get("x-hub-signature-256") or signatures.header(
        hook.headers, "x-hub-signature"
    )
    how, _, digest = said.partition("=")
    known = how if how in {"sha1", "sha256"} else "sha256"
    given = signatures.hexed(digest) if how == known else None
    signatures.signed(given, hook.body, keys.secrets, known)
    return Proof(_header(hook, "delivery") or None)


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield a node or taxonomy term in one language."""
    said = document(hook.body)
    event = _header(hook, "event") or text(said, "event")
    kind, _, action = event.removeprefix("entity:").partition(":")
    if kind not in drupal.PLAIN or action not in _ACTIONS:
        yield IgnoredDelivery(f"{event[:64] or 'no event'}: not about a page")
        return
    entity = mapping(said.get("entity")) or mapping(said.get("data")) or said
    fields = drupal.flat(entity)
    bundle = text(entity, "type").partition("--")[2] or _first(entity.get("type"), "target_id")
    number = fields.get("uuid") or text(entity, "id")
    locale = str(fields.get("langcode") or "")
    owner = (kind, locale)
    if not isinstance(number, str) or not number:
        yield IgnoredDelivery(f"a {kind} without a uuid")
    elif action == "delete" or fields.get("status") is not True:
        yield config.gone(bundle, number, owner)
    else:
        yield from config.page(drupal.page(kind, bundle, number, fields))


def _header(hook: Delivery, name: str) -> str:
    """Return a header of the module, which had other names before 8.x-1.0-alpha4."""
    found = hook.headers.get(f"x-drupal-{name}") or hook.headers.get(f"x-drupal-webhooks-{name}")
    return found or ""


def _first(value: object, name: str) -> str:
    rows = value if isinstance(value, list) else []
    return text(mapping(rows[0]), name) if rows else ""
