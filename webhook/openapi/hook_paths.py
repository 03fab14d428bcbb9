"""The OpenAPI descriptions of the hook addresses and of CloudEvents."""

from __future__ import annotations

from webhook.openapi.components import COUNT, IDS, TEXT, Schema, json_of, object_of, problems
from webhook.problems import OF_DELIVERIES
from webhook.sources import websub
from webhook.sources.registry import REGISTRY

HOOK: Schema = {
    "operationId": "sendHook",
    "summary": "Webhook of a CMS: verified by its own signature, translated into events",
    "description":
        "Deliveries that are irrelevant to a sitemap get 200 with a reason. Headers and body "
        "depend on the CMS: see `sitemapd connect`.",
    "security": [{"vendor": []}, {"signature": [], "timestamp": []}, {"token": []}],
    "requestBody": {"required": True, "content": {"application/json": {"schema": {
        "oneOf": [{"type": "object"}, {"type": "array"}]
    }}}},
    "responses": {
        "200": json_of(
            {
                **object_of(accepted=COUNT),
                "properties": {
                    "accepted": COUNT, "ids": IDS, "duplicate": {"const": True},
                    "ignored": {**TEXT, "description": "what was left out, and why"},
                    "resync": {**TEXT, "description": "why the source is asked what it has"},
                },
            },
            "understood: stored durably, stored before, or nothing for a sitemap",
        ),
        **problems(*(code for code in OF_DELIVERIES if code != "conflict")),
    },
}  # fmt: skip
SOURCE: Schema = {
    "name": "source",
    "in": "path",
    "required": True,
    "schema": {"enum": sorted(REGISTRY.keys() - {websub.NAME})},
}


def _asked(name: str, description: str, *, required: bool = True) -> Schema:
    return {
        "name": name, "in": "query", "required": required, "schema": TEXT,
        "description": description,
    }  # fmt: skip


_FEED = _asked("feed", "tells the subscription; part of the address that the hub was given")

HUB: Schema = {
    "get": {
        "operationId": "verifyIntent",
        "summary": "Verification of intent by a WebSub hub",
        "description": "200 with the challenge if the site asked this hub for exactly this, or 200"
        " if the hub says that it denies what was asked for; else 404.",
        "parameters": [
            _FEED,
            _asked("hub.mode", "subscribe, unsubscribe or denied"),
            _asked("hub.topic", "the feed"),
            _asked("hub.challenge", "what is to be answered; not if denied", required=False),
            _asked("hub.lease_seconds", "of a subscription: how long it lasts", required=False),
            _asked("hub.reason", "why it is denied", required=False),
        ],
        "responses": {
            "200": {
                "description": "it was asked for",
                "content": {
                    "text/plain": {"schema": TEXT},
                    "application/json": {"schema": object_of(accepted=COUNT)},
                },
            },
            **problems("not-found", "method-not-allowed", "store-down"),
        },
    },
    "post": {
        "responses": HOOK["responses"],
        "operationId": "sendFeed",
        "summary": "Content distribution from a WebSub hub",
        "description": "Signed in X-Hub-Signature by sha1, sha256, sha384 or sha512. What is not is"
        " answered 200 as well, and ignored.",
        "parameters": [{**_FEED, "required": False}],
        "requestBody": {"required": True, "content": {
            kind: {"schema": {"type": "string"}} for kind in sorted(websub.MEDIA_TYPES)
        }},
    },
}  # fmt: skip


_VALUES = {"type": ["string", "boolean", "null"]}
_LARGEST = 2**31 - 1


def cloud(event: Schema) -> Schema:
    """Return the schema of a CloudEvent whose data has the members of an `event`."""
    attribute = {"type": ["string", "boolean", "integer", "null"], "maximum": _LARGEST}
    nested = {"type": "object", "additionalProperties": _VALUES}
    return {
        "type": "object",
        "required": ["specversion", "id", "source", "type", "data"],
        "additionalProperties": {**attribute, "minimum": -_LARGEST},
        "properties": {
            "specversion": {"const": "1.0"},
            **{name: {"type": "string", "minLength": 1} for name in ("id", "source", "type")},
            "subject": {
                "type": ["string", "null"],
                "description": "the id of the page, where the data has none",
            },
            "data": {
                "type": "object",
                "description": "an Event; its `type` may follow from that of the CloudEvent",
                "propertyNames": {"enum": list(event["properties"])},
                "additionalProperties": {
                    "anyOf": [_VALUES, {"type": "array", "items": nested}, nested]
                },
            },
        },
    }
