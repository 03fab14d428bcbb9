"""Readers of sources: sitemaps, feeds, text lists, CSV, NDJSON, CMSs and databases. The use of
their pages belongs to worker/reconcile.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from shared.config.sites.import_source import CMSES
from shared.errors import SourceError
from worker.sources.csv_pages import read_csv
from worker.sources.ndjson import read_ndjson
from worker.sources.records import PARTIAL, Item, Note, RecordRefusal, SourceRecord
from worker.sources.sitemaps import is_url, listed_files, read_sitemap
from worker.sources.source_fetch import name_without_query
from worker.sources.source_options import NO_ACCESS, SourceOptions
from worker.sources.source_streams import SourceBody, open_file
from worker.sources.source_validators import SourceValidators
from worker.sources.sql import public_database, read_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    _Reader = Callable[[str, SourceOptions], Iterator[Item]]

__all__ = [
    "NO_ACCESS",
    "PARTIAL",
    "Item",
    "Note",
    "RecordRefusal",
    "SourceOptions",
    "SourceRecord",
    "SourceValidators",
    "estimate",
    "public",
    "read",
]  # fmt: skip

_PAGE = re.compile(rb"<(?:\w+:)?(?:url|item|entry)[\s>]")
_TABLES = {"csv": read_csv, "ndjson": read_ndjson}
_SERVICES = frozenset({"sql", "crawl", *CMSES})


def read(source: str, access: SourceOptions = NO_ACCESS) -> Iterator[Item]:
    """Yield every page of `sitemap:URL-or-path`, `csv:FILE`, `ndjson:FILE`, `sql:URL` or
    the URL of a CMS, `wordpress:URL`; without a prefix the source is a sitemap.

    Guarantees: pages come as the source states them, in a stable order (a consumer may count items,
    stop, and skip that many later), in memory that does not grow with the source; everything that
    gives no page is reported. Not guaranteed: that a page is valid for any site, or named only
    once.

    Raises SourceError, while iterating, only where the source itself cannot be read: missing, an
    HTTP error, no readable content. Any smaller fault is a RecordRefusal, and reading continues.
    """
    kind, address = _split(source)
    if kind == "sitemap":
        yield from read_sitemap(address, access)
        return
    if kind in _SERVICES:
        yield from _service(kind)(address, access)
        return
    with open_file(Path(address)) as document:
        yield from _TABLES[kind](document)


def estimate(source: str) -> int | None:
    """Return about how many pages the source states, with the files an index lists; None for URLs.

    For a progress bar: it counts the starts of pages and parses nothing.
    """
    kind, address = _split(source)
    if is_url(address) or kind in _SERVICES:
        return None
    try:
        path = Path(address)
        found = listed_files(path) if kind == "sitemap" else set()
        return sum(_marks(file) for file in found or {path})
    except (OSError, ValueError, SourceError):
        return None


def public(source: str) -> str:
    """Return the source for display and logs: without passwords and keys (RELIABILITY T30)."""
    kind, address = _split(source)
    if kind == "sql":
        return f"sql:{public_database(address)}"
    name = name_without_query(address) if is_url(address) else address
    # What is chosen behind the address of a service is no secret, and part of how to go on.
    chosen = urldefrag(address).fragment if kind in _SERVICES else ""
    return f"{kind}:{name}#{chosen}" if chosen else f"{kind}:{name}"


def _service(kind: str) -> _Reader:
    """Return the reader of a service, loaded only here: few sites have one."""
    if kind == "sql":
        return read_sql
    module = "worker.sources.crawl.reader" if kind == "crawl" else f"worker.sources.cms.{kind}"
    reader: _Reader = import_module(module).read
    return reader


def _marks(path: Path) -> int:
    elements = lines = 0
    with open_file(path) as document:
        for chunk in SourceBody(document.file):
            elements += len(_PAGE.findall(chunk))
            lines += chunk.count(b"\n")
    return elements or lines


def _split(source: str) -> tuple[str, str]:
    kind, _, address = source.partition(":")
    known = {"sitemap", *_TABLES, *_SERVICES}
    return (kind, address) if kind in known else ("sitemap", source)
