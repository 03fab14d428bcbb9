"""The OpenAPI descriptions of the operator's API."""

from __future__ import annotations

from shared.sitemap.shards import SECTION
from webhook.openapi.components import TEXT, URL, Schema, json_of, object_of, problems

_NAME = {"type": "string", "pattern": f"^{SECTION.pattern}$"}
_NAMES = {"type": "array", "items": TEXT, "maxItems": 100}
_SECTION: Schema = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "split": {"enum": ["", "month", "language"]},
        "news": {"type": "boolean"},
        "paths": {**_NAMES, "description": "path patterns, e.g. /blog/*"},
        "languages": _NAMES,
    },
}
_NEW: Schema = {
    "type": "object",
    "required": ["name", "base_url"],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "base_url": {**URL, "minLength": 1},
        "sections": {"type": "array", "items": _SECTION, "maxItems": 100},
    },
}
_SITE = object_of(
    name=TEXT, base_url=URL, web_root=TEXT, sections={"type": "array", "items": TEXT}, events=TEXT
)
_REVISION = {**TEXT, "description": "of the configuration; in force within a second"}


def _with(schema: Schema, **more: Schema) -> Schema:
    return object_of(**schema["properties"], **more)


_ALWAYS = ("unauthorized", "not-found", "method-not-allowed")
_CHANGES = (*_ALWAYS, "store-down", "not-changed", "invalid")
_BODY = (
    "malformed", "json", "timeout", "exists", "length-required", "too-large", "media-type",
    "content-encoding", "interrupted",
)  # fmt: skip


def _post(name: str, summary: str, body: Schema, answered: Schema) -> Schema:
    return {
        "operationId": name,
        "summary": summary,
        "security": [{"token": []}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"201": json_of(answered, "added"), **problems(*_CHANGES, *_BODY)},
    }


_SITES: Schema = {
    "get": {
        "operationId": "listSites",
        "summary": "Configured sites; for operators, 404 where [api] has no token",
        "security": [{"token": []}],
        "responses": {
            "200": json_of(object_of(sites={"type": "array", "items": _SITE}), "found"),
            **problems(*_ALWAYS),
        },
    },
    "post": _post(
        "addSite", "Add a site, with credentials made for it; for operators", _NEW,
        _with(_SITE, secret=TEXT, token=TEXT, revision=_REVISION),
    ),
}  # fmt: skip
DELETE: Schema = {
    "operationId": "removeSite",
    "summary": "Remove a site, whose files and state stay; for operators",
    "security": [{"token": []}],
    "responses": {
        "200": json_of(object_of(removed=TEXT, revision=_REVISION), "removed"),
        **problems(*_CHANGES, "last-site"),
    },
}
_ADD_SECTION = _post(
    "addSection", "Add a section to a site; for operators", _SECTION,
    _with(_SITE, revision=_REVISION),
)  # fmt: skip


def paths(site: Schema) -> Schema:
    """Return the addresses of the operator's API alone; `site` is the parameter in the path."""
    return {
        "/v1/sites": _SITES,
        "/v1/sites/{site}/sections": {"parameters": [site], "post": _ADD_SECTION},
    }
