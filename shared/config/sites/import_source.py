"""Checks of the setting `source`, which names a site's source of truth."""

from __future__ import annotations

import re

from shared.config import locations

KINDS = ("sitemap", "csv", "ndjson", "wordpress", "ghost", "sql")

_NAMED = re.compile(r"([a-z]+):(.*)", re.DOTALL)
_DATABASE = re.compile(r"[a-z][a-z0-9]*(?:\+[a-z0-9_]+)?://")
_SERVICES = frozenset({"wordpress", "ghost"})
_FILES = frozenset({"csv", "ndjson"})


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


def _of_address(kind: str, address: str) -> list[str]:
    remote, is_web = "://" in address, locations.http_address(address)
    rules = {
        f"source: must be {kind}: followed by its address": not address,
        f"source: must be an address, e.g. {kind}:https://www.example.com/": kind in _SERVICES
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
    if kind == "ghost" and not key:
        return ["source_key: ghost needs a key of the Content API"]
    if kind == "wordpress" and key and ":" not in key:
        return ["source_key: for wordpress it must be user:application password"]
    if key and kind not in {*_SERVICES, "sql"}:
        return ["source_key: only for wordpress, ghost and sql"]
    return []


def _of_query(kind: str, query: str) -> list[str]:
    if kind == "sql" and not query:
        return ["source_query: sql needs a SELECT that returns the pages"]
    if kind != "sql" and query:
        return ["source_query: only for sql"]
    return []


def _split(source: str) -> tuple[str, str]:
    found = _NAMED.fullmatch(source)
    if found is None or found[1] in {"http", "https"}:
        return "sitemap", source  # a bare address or path is a sitemap
    return found[1], found[2]
