"""Schemas and responses shared by the OpenAPI descriptions of all addresses."""

from __future__ import annotations

from typing import Any

from shared.sitemap.urls import MAX_LENGTH
from webhook.problems import PROBLEMS

Schema = dict[str, Any]

COUNT = {"type": "integer", "minimum": 0}
TEXT = {"type": "string"}
IDS = {"type": "array", "items": TEXT}
URL = {"type": "string", "format": "uri", "maxLength": MAX_LENGTH}
MOMENT = {"type": "string", "format": "date-time"}


def json_of(schema: Schema, description: str) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(**properties: Schema) -> Schema:
    return {"type": "object", "required": list(properties), "properties": properties}


STATUS = object_of(
    site=TEXT, base_url=URL, urls=COUNT, files=COUNT, published_urls=COUNT,
    last_publish={"type": ["string", "null"], "format": "date-time"}, waiting_events=COUNT,
    oldest_s={"type": ["number", "null"], "minimum": 0}, in_flight=COUNT, accepted_events=COUNT,
    dirty_files=COUNT, dirty_for_s={"type": "number"}, publishes=COUNT, dead_events=COUNT,
    paused=IDS, resync={"type": "array", "items": object_of(scope=TEXT, since=MOMENT)},
    failing={
        "type": "array",
        "items": object_of(
            loop=TEXT, part=TEXT, worker=TEXT, state={"enum": ["failing", "hanging"]},
            for_s={"type": "number"}, times=COUNT, reason=TEXT,
        ),
    },
)  # fmt: skip

RETRY = {"Retry-After": {"schema": {"type": "integer"}, "description": "seconds"}}


def problems(*codes: str) -> Schema:
    """Return the responses for these problem codes, one for each status."""
    by_status: dict[str, list[str]] = {}
    for code in codes:
        by_status.setdefault(str(PROBLEMS[code].status), []).append(code)
    return {
        status: {
            "description": "; ".join(f"`{code}`: {PROBLEMS[code].title}" for code in found),
            "content": {"application/problem+json": {"schema": ref("Problem")}},
            "headers": RETRY if status in {"429", "503"} else {},
        }
        for status, found in by_status.items()
    }


def metrics() -> Schema:
    """Return the description of `/metrics`, in the two formats that Prometheus reads."""
    formats = ("text/plain", "application/openmetrics-text")
    return {
        "operationId": "metrics",
        "summary": "Metrics for Prometheus: of the site whose token is sent, or of everything",
        "security": [{"token": []}],
        "responses": {
            "200": {
                "description": "found; `sitemapd_up` is 0 where Redis does not answer",
                "content": {name: {"schema": TEXT} for name in formats},
            },
            **problems("unauthorized", "method-not-allowed"),
        },
    }
