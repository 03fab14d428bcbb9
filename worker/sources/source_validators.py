"""Validators of a source's documents, so that one that did not change costs a 304 (RFC 9110, 13).

All documents of the last reading are asked for: that of an index says nothing about the files it
lists. If one changed, or has no validator that can be relied on, everything is read again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from worker.sources.source_fetch import Asked, ServerAnswerError, client, fetch

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTLED_S = 60.0
"""Seconds by which Last-Modified must lie before the answer to be relied on: a document may change
twice in a second (RFC 9110, 8.8.2.2)."""

MOST = 1_000
"""Most documents asked for: beyond that a reading is no dearer."""


class SourceValidators:
    """The validators of one source; a reading adds them, one document after the other."""

    def __init__(self) -> None:
        self._documents: dict[str, dict[str, str] | None] = {}

    def add(self, url: str, headers: Mapping[str, str]) -> None:
        """Add a document that was read from `url`, by the headers of its answer."""
        self._documents[url] = _condition(headers)

    def unchanged(self, start: str) -> bool:
        """Return True if every document is as it was read; `start` is the first. Raises
        SourceError.
        """
        conditions = list(self._documents.items())
        if not conditions or len(conditions) > MOST or not all(how for _, how in conditions):
            return False
        with client(start) as http:
            for url, how in conditions:
                try:
                    fetch(http, url, start, asked=Asked(headers=how or {})).file.close()
                except ServerAnswerError as error:
                    if error.status != 304:
                        raise
                else:
                    return False
        return True


def _condition(headers: Mapping[str, str]) -> dict[str, str] | None:
    """Return the header that asks for a change since this answer, None without a validator."""
    if etag := headers.get("etag"):
        return {"If-None-Match": etag}
    modified, sent = (_date(headers.get(name, "")) for name in ("last-modified", "date"))
    if modified is None or sent is None or (sent - modified).total_seconds() < SETTLED_S:
        return None
    return {"If-Modified-Since": headers["last-modified"]}


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC)
