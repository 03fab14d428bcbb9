"""Where a site's source of truth may be, as an administrator names it."""

from __future__ import annotations

import re

KINDS = ("sitemap", "csv", "ndjson", "wordpress", "ghost", "sql")

_NAMED = re.compile(r"([a-z]+):(.*)", re.DOTALL)
_URL = re.compile(r"https?://[^/?#]+")


def check(source: str, key: str, query: str, hours: float) -> None:
    """Raise ValueError, naming the setting and what to write, unless they go together.

    Nothing given is repeated: it may hold a password (RELIABILITY T30).
    """
    if not source:
        given = {"source_key": key, "source_query": query, "reconcile_hours": hours}
        wrong = [f"{name}: without a source it says nothing" for name, v in given.items() if v]
    else:
        wrong = _faults(*_split(source), key, query)
    if wrong:
        raise ValueError(wrong[0])


def _faults(kind: str, address: str, key: str, query: str) -> list[str]:
    service = kind in {"wordpress", "ghost"}
    rules = {
        f"source: write {kind}:https://www.example.com/": service and not _URL.match(address),
        f"source: write {kind}: and its address": not address,
        "source_key: Ghost asks for the key of its Content API": kind == "ghost" and not key,
        "source_key: for WordPress it is user:application password": (
            kind == "wordpress" and key and ":" not in key
        ),
        "source_key: only wordpress, ghost and sql take one": (
            key and not service and kind != "sql"
        ),
        "source_query: a database needs a query that names its pages": kind == "sql" and not query,
        "source_query: only a database (sql:) takes one": kind != "sql" and query,
    }
    return [fault for fault, holds in rules.items() if holds]


def _split(source: str) -> tuple[str, str]:
    found = _NAMED.fullmatch(source)
    if found is None or found[1] in {"http", "https"}:
        return "sitemap", source  # a bare address or path is a sitemap
    if found[1] not in KINDS:
        raise ValueError(f"source: begin it with one of {', '.join(f'{k}:' for k in KINDS)}")
    return found[1], found[2]
