"""Documents of Payload 3, read in all languages: one page for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from shared.cms.fields import Fields, date, text
from shared.cms.pages import SentPage


class PayloadVersion(NamedTuple):
    """A document in one language: the locale of its id, and its page (None: not public)."""

    locale: str
    page: SentPage | None


def versions(
    kind: str, number: str | int, doc: Fields, locales: Sequence[str]
) -> Iterator[PayloadVersion]:
    """Yield the document in each of `locales`; with at most one, a document is one page."""
    for code in locales or ("",):
        locale = code if len(locales) > 1 else ""
        here = _in(doc, code, locales)
        if text(here, "_status") not in {"", "published"}:
            yield PayloadVersion(locale, None)
            continue
        members = {
            "lastmod": date(here, "updatedAt"),
            "published": date(here, "publishedAt"),
            "title": text(here, "title"),
        }
        fields = {**here, "locale": code}
        yield PayloadVersion(locale, SentPage(kind, number, fields, locale, members=members))


def _in(doc: Fields, locale: str, known: Sequence[str]) -> Fields:
    """Return `doc` in one language: a localized field holds all its languages by their codes."""
    return {
        name: value.get(locale) if isinstance(value, Mapping) and {*value} <= {*known} else value
        for name, value in doc.items()
    }
