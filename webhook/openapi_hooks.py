"""The address for CMSes as OpenAPI, and CloudEvents."""

from __future__ import annotations

from webhook.openapi_parts import COUNT, IDS, TEXT, Schema, json_of, object_of, problems
from webhook.problems import PROBLEMS
from webhook.sources.registry import REGISTRY

HOOK: Schema = {
    "operationId": "sendHook",
    "summary": "What a CMS sends: signed its way, and turned into events",
    "description": "200 with a reason for what means nothing to a sitemap. Each CMS has headers and"
    " a body of its own: `sitemapd connect` says which.",
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
        **problems(*(code for code in PROBLEMS if code not in {"conflict", "internal"})),
    },
}  # fmt: skip
SOURCE: Schema = {
    "name": "source",
    "in": "path",
    "required": True,
    "schema": {"enum": sorted(REGISTRY)},
}


_VALUES = {"type": ["string", "boolean", "null"]}
_LARGEST = 2**31 - 1


def cloud(event: Schema) -> Schema:
    """A CloudEvent whose data has the members of an `event`."""
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
