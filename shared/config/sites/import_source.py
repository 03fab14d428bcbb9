"""Checks of the setting `source`, which names a site's source of truth."""

from __future__ import annotations

import re

from shared.config import locations

CMSES = (
    "wordpress", "ghost", "strapi", "wagtail", "directus", "payload", "contentful", "sanity",
    "storyblok", "prismic", "shopify", "drupal",
)  # fmt: skip
"""Every CMS whose interface can be read; worker/sources/cms has a module of that name."""

KINDS = ("sitemap", "csv", "ndjson", *CMSES, "sql", "crawl")

SHOWN = (
    "sitemap:URL-or-path (feeds, too), csv:FILE, ndjson:FILE, sql:URL, crawl:URL or CMS:URL, where"
    f" CMS is one of {', '.join(CMSES)}"
)
"""The kinds of sources, for the help of commands."""

_NAMED = re.compile(r"([a-z]+):(.*)", re.DOTALL)
_DATABASE = re.compile(r"[a-z][a-z0-9]*(?:\+[a-z0-9_]+)?://")
_WEB = frozenset({*CMSES, "crawl"})
_FILES = frozenset({"csv", "ndjson"})
_KEYS = {
    "ghost": "a key of the Content API", "contentful": "an access token of the Delivery API",
    "storyblok": "the public access token of the space",
    "shopify": "an access token of the Admin API that may read products and content",
}  # fmt: skip
_PAIRS = {
    "wordpress": "user:application password", "drupal": "user:password", "crawl": "user:password",
    "payload": "the collection of its users:API key",
}  # fmt: skip
_KEYLESS = frozenset({"wagtail"})
_QUERIES = {
    "sql": "a SELECT that returns the pages",
    "sanity": "the projection of your webhook, {_id, _type, ...}",
}


def faults(source: str, key: str, query: str, hours: float) -> list[str]:
    """Faults of the settings of a source, each with the setting and the remedy.

    No value is repeated: it may hold a password (RELIABILITY T30).
    """
    if not source:
        given = {"source_key": key, "source_query": query, "reconcile_hours": hours}
        return [f"{name}: needs `source`" for name, v in given.items() if v]
    kind, address = _split(source)
    if kind not in KINDS:
        return [f"source: must begin with one of {', '.join(f'{each}:' for each in KINDS)}"]
    return _of_address(kind, address) + _of_key(kind, key) + _of_query(kind, query)


def kind_of(source: str) -> str:
    """The kind of a source, empty without one."""
    return _split(source)[0] if source else ""


def _of_address(kind: str, address: str) -> list[str]:
    remote, is_web = "://" in address, locations.http_address(address)
    rules = {
        f"source: must be {kind}: followed by its address": not address,
        f"source: must be an address, e.g. {kind}:https://www.example.com/": kind in _WEB
        and not is_web,
        "source: must be sitemap: followed by an address or a path, e.g. "
        "sitemap:https://www.example.com/sitemap.xml": (
            kind == "sitemap" and remote and not is_web
        ),
        f"source: must be {kind}: followed by the path of a file": kind in _FILES and remote,
        "source: must be sql: followed by a database URL of SQLAlchemy, e.g. "
        "sql:postgresql://HOST/NAME": (kind == "sql" and not _DATABASE.match(address)),
    }
    return [fault for fault, holds in rules.items() if holds][:1]


def _of_key(kind: str, key: str) -> list[str]:
    if kind in _KEYS and not key:
        return [f"source_key: {kind} needs {_KEYS[kind]}"]
    if kind in _PAIRS and key and ":" not in key:
        return [f"source_key: for {kind} it must be {_PAIRS[kind]}"]
    if key and kind not in {*_WEB, "sql"} - _KEYLESS:
        return ["source_key: only for a database or a CMS that asks for one"]
    return []


def _of_query(kind: str, query: str) -> list[str]:
    if kind == "sql" and not query:
        return [f"source_query: sql needs {_QUERIES[kind]}"]
    if query and kind not in _QUERIES:
        return [f"source_query: only for {' and '.join(_QUERIES)}"]
    return []


def _split(source: str) -> tuple[str, str]:
    found = _NAMED.fullmatch(source)
    if found is None or found[1] in {"http", "https"}:
        return "sitemap", source  # a bare address or path is a sitemap
    return found[1], found[2]
