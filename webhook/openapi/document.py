"""The HTTP interface as an OpenAPI 3.1 document, made from the tables that the code itself uses."""

from __future__ import annotations

from shared.events import extension_fields
from shared.events.event_fields import (
    MAX_ID,
    MAX_VERSION,
    PAGE_TYPES,
    RESYNC,
    RESYNC_MEMBERS,
    TYPES,
)
from shared.sitemap.entry import CHANGEFREQS, PRIORITY_PATTERN
from shared.sitemap.extensions import alternates, elements, images, news, videos
from shared.sitemap.extensions.value_types import W3C
from shared.sitemap.shards import SECTION
from webhook.auth import DELIVERY
from webhook.openapi import operator_paths
from webhook.openapi.components import (
    COUNT,
    IDS,
    STATUS,
    TEXT,
    URL,
    Schema,
    json_of,
    metrics,
    object_of,
    problems,
    ref,
)
from webhook.openapi.hook_paths import HOOK, HUB, SOURCE, cloud
from webhook.openapi.page_schemas import ANSWER, ANY_URL, FIND, LISTED, entry
from webhook.problems import MAX_FAULTS, OF_DELIVERIES, PROBLEMS
from webhook.request_body import MAX_DIGITS, MAX_ITEMS, NATIVE, NDJSON
from webhook.sources import cloudevents

_READY = "Readiness: events can be accepted and are published; with `?accepting`: can be accepted"
_STATE = "State of a page"
_NO_DAY = "^[0-9]{4}(-(0[1-9]|1[0-2]))?$"
_NOTHING = {"type": "null"}  # a member that is null counts as absent
_RESYNC = {"enum": list(RESYNC_MEMBERS)}
_LARGEST = 10**MAX_DIGITS - 1

_IDENT: list[Schema] = [
    {"type": "string", "minLength": 1, "maxLength": MAX_ID},
    {"type": "integer", "minimum": -_LARGEST, "maximum": _LARGEST},
]


def _extension(element: elements.Element, description: str) -> Schema:
    return {"anyOf": [elements.schema(element), _NOTHING], "description": description}


EVENT: Schema = {
    "type": "object",
    "required": ["type"],
    "additionalProperties": False,
    "properties": {
        "type": {
            "enum": list(TYPES),
            "description": "upsert lists a page, delete removes it, resync asks the source",
        },
        "loc": {
            "anyOf": [URL, _NOTHING],
            "description": "absolute URL of the page; a delete may give `id` instead",
        },
        "id": {
            "anyOf": [*_IDENT, _NOTHING],
            "description": "the CMS's lasting id of the page: it lets pages move",
        },
        "section": {
            "type": ["string", "null"],
            "pattern": f"^{SECTION.pattern}$",
            "description": "a configured section; default `pages`",
        },
        "version": {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_VERSION},
                {"type": "string", "pattern": W3C},
                _NOTHING,
            ],
            "description": "W3C datetime or milliseconds since 1970, at most 24 hours ahead;"
            " the older loses; default: arrival",
        },
        "lastmod": {
            "type": ["string", "null"],
            "pattern": f"{W3C}|{_NO_DAY}",
            "description": "last change, W3C date or datetime; a year or month alone and times in "
            "the future are left out with a warning",
        },
        "changefreq": {"enum": [*sorted(CHANGEFREQS), None]},
        "priority": {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "pattern": f"^{PRIORITY_PATTERN}$"},
                _NOTHING,
            ],
            "description": "0.0 to 1.0",
        },
        "noindex": {"type": "boolean", "description": "true: the page is not listed"},
        "canonical": {
            "type": ["string", "null"],
            "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://",
            "description": "another URL here: the page is not listed",
        },
        **ANSWER,
        "prefix": {
            "anyOf": [URL, _NOTHING],
            "description": "of a resync: what the URLs of its pages begin with",
        },
        "images": _extension(images.IMAGE, "images on the page"),
        "videos": _extension(videos.VIDEO, "videos that are the page's main content"),
        "news": _extension(news.NEWS, "an article, in a site with a section for news"),
        "alternates": alternates.SCHEMA,
        "group": {
            "anyOf": [*_IDENT, _NOTHING],
            "description": "names the page's translations together; needs `lang`",
        },
        "lang": extension_fields.LANG_SCHEMA,
        "published": {
            "type": ["string", "null"],
            "pattern": W3C,
            "description": "when the page was first published, for feeds",
        },
        "title": {
            "type": ["string", "null"],
            "minLength": 1,
            "description": f"of the page, for feeds; at most {extension_fields.MAX_TITLE}"
            " characters",
        },
        "publish_at": {
            "type": ["string", "null"],
            "pattern": W3C,
            "description": "the page is listed from this time on; a date from its midnight, UTC",
        },
        "expires": {
            "type": ["string", "null"],
            "pattern": W3C,
            "description": "the page is listed until this time; a date is its last day, UTC",
        },
        "description": {
            "type": ["string", "null"],
            "minLength": 1,
            "description": "of the page in a sentence or two, for llms.txt; at most"
            f" {extension_fields.MAX_DESCRIPTION} characters",
        },
    },
    "anyOf": [
        {
            "required": ["loc"],
            "properties": {"type": {"enum": list(PAGE_TYPES)}, "loc": URL, "prefix": _NOTHING},
        },
        {
            "required": ["id"],
            "properties": {
                "type": {"const": "delete"},
                "id": {"type": ["string", "integer"]},
                "prefix": _NOTHING,
            },
        },
        *(
            {"properties": {"type": {"const": RESYNC}, no: _NOTHING}, "propertyNames": _RESYNC}
            for no in ("section", "prefix")
        ),
    ],
}


def _bodies() -> Schema:
    many = {"type": "array", "items": ref("Event"), "minItems": 1, "maxItems": MAX_ITEMS}
    return {
        kind: {"schema": {"type": "string"} if kind in NDJSON else {"oneOf": [ref("Event"), many]}}
        for kind in sorted(NATIVE)
    }


def _header(name: str, description: str, pattern: str) -> Schema:
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "header", "description": description, "schema": schema}


_SITE = {
    "name": "site",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": f"^{SECTION.pattern}$"},
}
_FAULT = object_of(item={"type": ["integer", "null"]}, field=TEXT, rule=TEXT, detail=TEXT)
_FAULTS = {"type": "array", "items": _FAULT, "maxItems": MAX_FAULTS}


def _warned(found: Schema) -> Schema:
    """Return a response schema that may carry `warnings` beside its other members."""
    warnings = {**_FAULTS, "description": "members that were changed, left out or are unwise"}
    return {**found, "properties": {**found["properties"], "warnings": warnings}}


def _post_events() -> Schema:
    return {
        "operationId": "sendEvents",
        "summary": "Send change events: one event, an array, or one event per line",
        "description": f"CloudEvents 1.0 whose data is an Event are taken, too: `CloudEvent` as"
        f" {cloudevents.STRUCTURED}, an array of them as {cloudevents.BATCH}, or the Event with its"
        " context in ce- headers.",
        "parameters": [
            _header("webhook-id", "the same for each retry, and signed", f"^{DELIVERY.pattern}$")
        ],
        "security": [{"signature": [], "timestamp": []}, {"token": []}],
        "requestBody": {"required": True, "content": _bodies()},
        "responses": {
            "202": json_of(
                _warned(object_of(accepted=COUNT, ids=IDS)), "all events are stored durably"
            ),
            "200": json_of(
                _warned(object_of(accepted=COUNT, duplicate={"const": True}, ids=IDS)),
                "stored before",
            ),
            **problems(*(code for code in OF_DELIVERIES if code != "not-found")),
        },
    }  # fmt: skip


def _get(
    name: str, summary: str, schema: Schema, *codes: str, loc: Schema | None = None
) -> Schema:  # fmt: skip
    found: Schema = {
        "operationId": name,
        "summary": summary,
        "responses": {"200": json_of(schema, "found"), **problems(*codes)},
    }
    if "unauthorized" in codes:
        found["security"] = [{"token": []}]
    if loc is not None:
        found["parameters"] = [{"name": "loc", "in": "query", "required": True, "schema": loc}]
    return found


_PROBLEM = object_of(
    type=TEXT, title=TEXT, status={"type": "integer"}, detail=TEXT,
    code={"enum": list(PROBLEMS)}, request_id=TEXT,
)  # fmt: skip
_PROBLEM["properties"]["errors"] = _FAULTS


def document() -> Schema:
    """Return the whole document."""
    public = ("not-found", "method-not-allowed", "store-down")
    asked = ("unauthorized", "method-not-allowed", "store-down")
    status = object_of(status={"const": "ok"})
    api_key = {"type": "apiKey", "in": "header"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "sitemapd", "version": "1", "license": {"name": "Apache-2.0"}},
        "paths": {
            "/v1/sites/{site}/events": {"parameters": [_SITE], "post": _post_events()},
            "/v1/sites/{site}/hooks/{source}": {"parameters": [_SITE, SOURCE], "post": HOOK},
            "/v1/sites/{site}/hooks/websub": {"parameters": [_SITE], **HUB},
            "/v1/sites/{site}": {
                "parameters": [_SITE],
                "get": _get("getSite", "Status of a site", STATUS, *asked),
                "delete": operator_paths.DELETE,
            },
            **operator_paths.paths(_SITE),
            "/v1/sites/{site}/entries": {
                "parameters": [_SITE],
                "get": _get("findEntry", _STATE, entry(EVENT), *asked, "invalid", loc=URL),
            },
            "/v1/sites/{site}/listed": {
                "parameters": [_SITE],
                "get": _get("findListed", FIND, LISTED, *public, "invalid", loc=ANY_URL),
            },
            "/metrics": {"get": metrics()},
            "/healthz": {"get": _get("alive", "Liveness", status)},
            "/readyz": {"get": _get("ready", _READY, status, "store-down", "not-published")},
            "/openapi.json": {"get": _get("describe", "This document", {"type": "object"})},
        },
        "components": {
            "schemas": {
                "Event": EVENT,
                "CloudEvent": cloud(EVENT),
                "Problem": _PROBLEM,
            },
            "securitySchemes": {
                "timestamp": {**api_key, "name": "webhook-timestamp"},
                "signature": {**api_key, "name": "webhook-signature"},
                "token": {"type": "http", "scheme": "bearer"},
                "vendor": {
                    **api_key,
                    "name": "x-vendor-signature",
                    "description": "the header in which each vendor signs",
                },
            },
        },
    }
