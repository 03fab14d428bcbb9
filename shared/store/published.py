"""What was published when, as far back as the store remembers (shared/crawls/delays.py asks)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import redis

from shared.sites import Site
from shared.store.contract import Keys
from shared.store.redis import answering

_BATCH = 200
_UNLISTED = frozenset({"deleted", "noindex", "not canonical", "moved", "no news any more"})
"""Reasons of shared/patch.py that change files by taking a page out of them."""


class RecentlyPublished:
    """Reads `recent`: what was decided, and the publish that followed.

    A page counts as published with the first publish after its change was decided, though a large
    backlog may take several.
    """

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._client, self._key = client, Keys(name).recent
        self._base, self._form = site.base, site.form

    def files(self) -> Iterator[tuple[str, int]]:
        """The URL of each file that was written, and when (ms since 1970)."""
        for at_ms, fields in self._entries():
            for name in _note(fields).get("written", ()):
                listed = name.removesuffix(".gz") if self._form == "encoded" else name
                yield self._base.url(listed), at_ms

    def changes(self) -> Iterator[tuple[str, int]]:
        """The loc of each page that was added or changed, and when its file was written (ms)."""
        waiting: set[str] = set()
        for at_ms, fields in self._entries():
            for _, loc, reason, changed in json.loads(fields.get(b"decided", b"[]")):
                if changed and reason not in _UNLISTED and loc.startswith(self._base.prefix):
                    waiting.add(loc)
            if _note(fields).get("written"):
                yield from ((loc, at_ms) for loc in waiting)
                waiting.clear()

    def _entries(self) -> Iterator[tuple[int, dict[bytes, bytes]]]:
        after = "-"
        while True:
            with answering():
                found: Any = self._client.xrange(self._key, after, count=_BATCH)
            for ident, fields in found:
                yield int(ident.partition(b"-")[0]), fields
            if len(found) < _BATCH:
                return
            after = "(" + found[-1][0].decode()


def _note(fields: dict[bytes, bytes]) -> dict[str, Any]:
    note: dict[str, Any] = json.loads(fields.get(b"published", b"{}"))
    return note
