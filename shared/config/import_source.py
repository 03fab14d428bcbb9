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
        return [f"{name}: without a source it says nothing" for name, v in given.items() if v]
    kind, address = _split(source)
    if kind not in KINDS:
        return [f"source: begin it with one of {', '.join(f'{each}:' for each in KINDS)}"]
    return _of_address(kind, address) + _of_key(kind, key) + _of_query(kind, query)


def _of_address(kind: str, address: str) -> list[str]:
    remote, is_web = "://" in address, locations.http_address(address)
    rules = {
        f"source: write {kind}: and its address": not address,
        f"source: write {kind}:https://www.example.com/": kind in _SERVICES and not is_web,
        "source: write sitemap:https://www.example.com/sitemap.xml, or a path": (
            kind == "sitemap" and remote and not is_web
        ),
        f"source: write {kind}: and the path of a file": kind in _FILES and remote,
        "source: write sql:postgresql://HOST/NAME, as SQLAlchemy names a database": (
            kind == "sql" and not _DATABASE.match(address)
        ),
    }
    return [fault for fault, holds in rules.items() if holds][:1]


def _of_key(kind: str, key: str) -> list[str]:
    if kind == "ghost" and not key:
        return ["source_key: Ghost asks for the key of its Content API"]
    if kind == "wordpress" and key and ":" not in key:
        return ["source_key: for WordPress it is user:application password"]
    if key and kind not in {*_SERVICES, "sql"}:
        return ["source_key: only wordpress, ghost and sql take one"]
    return []


def _of_query(kind: str, query: str) -> list[str]:
    if kind == "sql" and not query:
        return ["source_query: a database needs a query that names its pages"]
    if kind != "sql" and query:
        return ["source_query: only a database (sql:) takes one"]
    return []


def _split(source: str) -> tuple[str, str]:
    found = _NAMED.fullmatch(source)
    if found is None or found[1] in {"http", "https"}:
        return "sitemap", source  # a bare address or path is a sitemap
    return found[1], found[2]
