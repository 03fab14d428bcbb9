"""OpenAPI schemas of what is told of one page."""

from __future__ import annotations

from shared.events import answer_fields
from webhook.openapi.components import COUNT, MOMENT, TEXT, URL, Schema, object_of

_FLAG = {"type": "boolean"}
ANSWER: Schema = {
    "status": {
        "type": ["integer", "null"],
        "minimum": answer_fields.LEAST,
        "maximum": answer_fields.MOST,
        "description": "what the page answers with: 404, 410, 301 and 308 take it out; others but "
        "200 are accepted with a warning",
    },
    "redirect_to": {
        "type": ["string", "null"],
        "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://",
        "description": "where it redirects, for good unless `status` says otherwise: the page is "
        "not listed; its target is listed by an event of its own",
    },
}
FIND = "The file that lists a page, as everyone can read it in the files; for sitemap.html"
ANY_URL = {**TEXT, "minLength": 1, "description": "of any site, in any spelling, or a path"}
_FOUND = object_of(loc=URL, file=TEXT, lastmod=TEXT)
LISTED = {
    "type": "object",
    "required": ["loc", "listed", "others", "pages"],
    "properties": {
        "loc": {**TEXT, "description": "its canonical form; empty: it cannot be on this site"},
        "listed": _FLAG,
        "file": TEXT,
        "lastmod": TEXT,
        "others": {
            "type": "array",
            "items": _FOUND,
            "description": "listed pages whose URL differs in its spelling only",
        },
        "pages": {**COUNT, "description": "number of listed pages"},
    },
}


def entry(event: Schema) -> Schema:
    """Return the schema of the state of a page, which has members of an `event`."""
    return {
        "type": "object",
        "required": ["loc", "listed", "lately"],
        "properties": {
            "loc": URL,
            "listed": _FLAG,
            "why": {**TEXT, "description": "reason why it is not listed"},
            "listed_from": {**MOMENT, "description": "its publish_at, while it lies ahead"},
            "listed_until": {**MOMENT, "description": "its expires"},
            "version": {**MOMENT, "description": "of the latest event about it"},
            "since": {
                **MOMENT,
                "description": "its last change, if that is among the latest decisions",
            },
            "section": TEXT,
            "file": TEXT,
            "url": URL,
            "published": {**_FLAG, "description": "false: the file does not show this event yet"},
            "file_written": MOMENT,
            "lastmod": TEXT,
            "changefreq": TEXT,
            "priority": TEXT,
            "images": event["properties"]["images"],
            "videos": event["properties"]["videos"],
            "alternates": event["properties"]["alternates"],
            "as_news": {"type": "object", "description": "the same of its entry in a news file"},
            "looked": {
                "type": "object",
                "description": "the last look at the page, where looks are on: `at`, `status`, "
                "`grade`, `why`, and the proof of its last change",
            },
            "lately": {"type": "array", "items": object_of(event=TEXT, at=MOMENT, decision=TEXT)},
        },
    }
