"""Readers of existing sources of truth: sitemaps, feeds, text lists, CSV, NDJSON.

Guarantees: pages come as the source states them, in a stable order (a consumer may count items,
stop, and skip that many later), in memory that does not grow with the source; whatever gives no
page is said. Not guaranteed: that a page is valid for any site, or named only once.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from shared.errors import SourceError
from worker.sources.documents import Body, open_file
from worker.sources.ndjson import read_ndjson
from worker.sources.records import Item, Note, Record, Refusal
from worker.sources.sitemaps import is_url, listed_files, read_sitemap
from worker.sources.tables import read_csv

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Item", "Note", "Record", "Refusal", "estimate", "read"]

_PAGE = re.compile(rb"<(?:\w+:)?(?:url|item|entry)[\s>]")
_TABLES = {"csv": read_csv, "ndjson": read_ndjson}


def read(source: str) -> Iterator[Item]:
    """Every page of `sitemap:URL-or-path`, `csv:FILE` or `ndjson:FILE`; a bare one is a sitemap.

    Raises SourceError, while iterating, only where the source itself cannot be read: missing, an
    HTTP error, nothing readable in it. Any fault below that is a Refusal, and reading goes on.
    """
    kind, address = _split(source)
    if kind == "sitemap":
        yield from read_sitemap(address)
        return
    with open_file(Path(address)) as document:
        yield from _TABLES[kind](document)


def estimate(source: str) -> int | None:
    """About how many pages the source states, the files an index lists included; None for URLs.

    For a progress bar: what begins a page is counted, nothing is parsed.
    """
    kind, address = _split(source)
    if is_url(address):
        return None
    try:
        path = Path(address)
        found = listed_files(path) if kind == "sitemap" else set()
        return sum(_marks(file) for file in found or {path})
    except (OSError, ValueError, SourceError):
        return None


def _marks(path: Path) -> int:
    elements = lines = 0
    with open_file(path) as document:
        for chunk in Body(document.file):
            elements += len(_PAGE.findall(chunk))
            lines += chunk.count(b"\n")
    return elements or lines


def _split(source: str) -> tuple[str, str]:
    kind, _, address = source.partition(":")
    return (kind, address) if kind in {"sitemap", *_TABLES} else ("sitemap", source)
