"""Deliveries of a site that were refused within the last minutes, and where they came from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MINUTES = 10
NOTES = 100
"""Newest notes that are searched for the address."""


class RecentRefusals(NamedTuple):
    """Refused requests of the last MINUTES: their number by code, the most frequent first, and by
    code the address that most of the noted ones came from (empty: not noted).
    """

    counts: Mapping[str, int] = {}
    clients: Mapping[str, str] = {}


def refusals_of(notes: Iterable[bytes], numbers: Mapping[bytes, int]) -> RecentRefusals:
    """Return the refusals of which `notes` are stored, with their `numbers` by code."""
    counts, clients = Counter[str](), dict[str, Counter[str]]()
    for code, number in numbers.items():
        counts[code.decode(errors="replace")] += number
    for stored in notes:
        note = _note(stored)
        if note.get("client"):
            clients.setdefault(str(note.get("code")), Counter())[str(note["client"])] += 1
    return RecentRefusals(
        dict(counts.most_common()),
        {code: client for code, each in clients.items() for client, _ in each.most_common(1)},
    )


def _note(stored: bytes) -> dict[str, Any]:
    try:
        found = json.loads(stored)
    except ValueError:
        return {}  # not written by sitemapd
    return found if isinstance(found, dict) else {}
