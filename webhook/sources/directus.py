"""Adapter for Directus flows, whose own events hold only the changed fields (WEBHOOKS 1.7)."""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms import directus
from shared.cms.fields import EMPTY, Fields, ident, items, mapping, text
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
from webhook.sources.guides import RUN, Guide, documented, literal
from webhook.sources.payload_fields import document

NAME = "directus"
MEDIA_TYPES = JSON

_KEYS = "module.exports = ({ $trigger }) => $trigger.keys ?? [$trigger.key]"
_QUERY = """\
{"filter": {"id": {"_in": "{{ids}}"}}, "limit": -1,
                "fields": ["id", "status", "slug", "date_created", "date_updated"]}"""
_BODY = '{"trigger": {{$trigger}}, "items": {{read}}}'


GUIDE = Guide(
    title="Directus",
    credential="you choose it: 16 characters or more, sent as a header",
    place="the header Authorization of the last step of the flow",
    steps=f"""\
1. Settings > Flows > Create Flow. Trigger  Event Hook, Type  Action (Non-Blocking),
   Scope  items.create, items.update, items.delete; and your Collections.
2. Operation Run Script, Key  ids
   Code         {literal(_KEYS)}
3. Operation Read Data, Key  read
   Permissions  Full Access
   Collection   {literal("{{$trigger.collection}}")}
   IDs          (none)
   Query        {literal(_QUERY)}
   Connect both its paths, success and failure, to the next one.
4. Operation Webhook / Request URL
   Method       POST
   URL          {{address}}
   Header       Authorization: Bearer {{secret}}
   Request Body {literal(_BODY)}
5. In sitemapd.toml:  permalinks = {{{{ articles = "/blog/{{{{slug}}}}" }}}}

Fields are those that your permalinks name, status and the dates; one that a collection lacks has
Read Data refused, so collections that differ in them want a flow each. Where the primary key is
not called id but, say, code: filter by code, and add "alias": {literal('{"id": "code"}')}.""",
    sends="which items changed and, by the step Read Data, what they are now",
    caveats="without Read Data a changed item is known only as far as it changed; an item counts as"
    " public if its `status` is `published`, or it has none; nothing is signed or repeated; it"
    " sends to no address of its own machine while IMPORT_IP_DENY_LIST has its default",
    evidence={
        "flow, deliveries, what they leave out": RUN,
        "IMPORT_IP_DENY_LIST": documented(
            "https://github.com/directus/directus/blob/main/api/src/request/is-denied-ip.ts"
        ),
    },
    config='permalinks = { articles = "/blog/{slug}" }',
    chosen=True,
)


_AS_PRINTED = (
    "it needs Full Access, no IDs, and the query of `sitemapd connect directus` with no field that"
    " the collection lacks"
)


def verify(hook: Delivery, keys: SenderSecrets, _now: float) -> Proof:
    """Verify a header that the administrator sets: Directus signs nothing. Raises
    UnauthorizedError.
    """
    signatures.token(hook.headers, keys.secrets)
    return Proof()


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield each item of an event; its key is a text or a number, depending on the trigger."""
    sent = document(hook.body)
    said = mapping(sent.get("trigger")) or sent
    event, kind = text(said, "event"), text(said, "collection")
    action = event.rpartition(".")[2]
    if ".items." not in f".{event}" or action not in {"create", "update", "delete"} or not kind:
        yield IgnoredDelivery(f"{event[:64] or 'no event'}: not about items")
        return
    keys = _keys(said)
    if not keys:
        yield IgnoredDelivery("an event without keys")
    read = sent.get("items")
    rows = {str(row.get("id")): row for row in items(read) or [mapping(read)] if "id" in row}
    refused = "" if rows else text(mapping(read), "code")
    for key in keys:
        row = rows.get(key, mapping(said.get("payload")))
        if action == "delete":
            yield config.gone(kind, key)
        elif refused and directus.is_public(row):
            yield IgnoredDelivery(f"the step Read Data was refused, {refused[:64]}: {_AS_PRINTED}")
        elif row is EMPTY or not row:
            yield IgnoredDelivery(
                "the item itself was not sent: add the step Read Data to the flow"
            )
        elif not directus.is_public(row):
            yield config.gone(kind, key)
        elif key not in rows and ("status" not in row or not _suffices(row, kind, config)):
            # A delta: absent fields are unknown, and the status may be one of them.
            yield IgnoredDelivery("only what changed was sent: add the step Read Data to the flow")
        else:
            yield from config.page(directus.page(kind, key, row))


def _keys(said: Fields) -> list[str]:
    """Return the keys of an event as texts: `["1"]` of one item, `[2, 3]` of several."""
    many = said.get("keys")
    given = [*many] if isinstance(many, list) else []
    given.append(said.get("key"))
    found = [str(key) for key in given if isinstance(key, (str, int)) and str(key)]
    return list(dict.fromkeys(key for key in found if key not in {"undefined", "null"}))


def _suffices(row: Fields, kind: str, config: AdapterContext) -> bool:
    template = config.connection.template(kind)
    return template is not None and ident(row, "slug") is not None
