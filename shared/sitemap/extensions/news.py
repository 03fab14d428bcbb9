"""An article for Google News (PROTOCOL W1 to W9).

    {"publication": {"name": "The Example Times", "language": "en"},
     "publication_date": "2026-11-21T10:00:00Z", "title": "..."}

Legacy beside these: `access` (Subscription, Registration), `genres` and `stock_tickers` (arrays, or
texts with commas), `keywords`. Never published: `geo_targeting`, `geo_locations`, `amp`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.sitemap import w3c_dates
from shared.sitemap.extensions import elements
from shared.sitemap.extensions.elements import Element
from shared.sitemap.extensions.languages import NEWS_PATTERN, news_language
from shared.sitemap.extensions.report import ValueRefusedError, ValueReport
from shared.sitemap.extensions.value_types import (
    Date,
    Enumerated,
    Matching,
    Several,
    Text,
    ValueType,
    one_of,
)

PREFIX = "news"
NAMESPACE = "http://www.google.com/schemas/sitemap-news/0.9"
WINDOW_MS = 48 * 3_600_000
"""Time in ms after its publication in which an article may be listed as news (PROTOCOL W4)."""

_DATE = len("2026-11-21")
_MAX_TEXT = 2_048  # ours: the schema has no limit
_GENRES = ("PressRelease", "Satire", "Blog", "OpEd", "Opinion", "UserGenerated")
_PARENTHESES = re.compile(r"\s\([^()]*\)$")
_BEFORE_NAME = re.compile(r"\s*[-|\u2013\u2014\u00b7]\s*$")

News = Mapping[str, Any]


def _ticker(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_]+:[A-Za-z0-9_]+", text):
        raise ValueRefusedError("a ticker is EXCHANGE:SYMBOL, as NASDAQ:AMAT")
    return text.upper()


def _needed(tag: str, kind: ValueType, rule: str) -> Element:
    return Element(tag=tag, kind=kind, rule=rule, required=True, missing="PROTOCOL W1")


def _legacy(tag: str, kind: ValueType) -> Element:
    return Element(tag=tag, kind=kind, rule="PROTOCOL W9", deprecated=True)


def _never(tag: str) -> Element:
    return Element(tag=tag, kind=Text(_MAX_TEXT), rule="PROTOCOL W9", never=True)


NEWS = Element(
    tag="news", rule="PROTOCOL W1",
    children=(
        Element(
            tag="publication", rule="PROTOCOL W1", required=True,
            children=(
                _needed("name", Text(_MAX_TEXT), "PROTOCOL W1"),
                _needed("language", Matching(news_language, NEWS_PATTERN), "PROTOCOL W6"),
            ),
        ),
        _legacy("access", Enumerated("Subscription", "Registration")),
        _legacy("genres", Several(one_of(*_GENRES), ", ", ordered=True)),
        _needed("publication_date", Date(counted=True), "PROTOCOL W8"),
        _needed("title", Text(_MAX_TEXT), "PROTOCOL W1"),
        _legacy("keywords", Text(_MAX_TEXT)),
        _legacy("stock_tickers", Several(_ticker, ", ", most=5, ordered=True)),
        _never("geo_targeting"),
        _never("geo_locations"),
        _never("amp"),
    ),
)  # fmt: skip
"""In the order of the XSD (PROTOCOL W2)."""


def take(value: object, report: ValueReport, *, deprecated: bool) -> News | None:
    """The article of a JSON value; faults go to `report`."""
    if value is None:
        return None
    found: News | None = elements.take(NEWS, value, report, NEWS.name, deprecated=deprecated)
    if found:
        _look(found, report)
    return found


def _look(article: News, report: ValueReport) -> None:
    """Warn of names and titles that differ from those on Google News (PROTOCOL W7)."""
    name, title = article.get("publication", {}).get("name", ""), article.get("title", "")
    if _PARENTHESES.search(name):
        detail = "leave out the parentheses behind the name, as on news.google.com"
        report.warn("news.publication.name", "PROTOCOL W7", detail)
    if name and title.endswith(name) and _BEFORE_NAME.search(title.removesuffix(name)):
        detail = "leave the name of the publication out of the title"
        report.warn("news.title", "PROTOCOL W7", detail)


def published_ms(value: News) -> int:
    """Time of an article's first publication, in milliseconds since 1970 (PROTOCOL W4, W8).

    A date alone counts from its midnight UTC.
    """
    return w3c_dates.epoch_ms(value["publication_date"])


def appears_ms(value: News) -> int:
    """Earliest time at which an article may be listed, in milliseconds since 1970 (PROTOCOL W4).

    That is its publication; for a date alone, the start of that date in the farthest time zone.
    """
    exact = len(value["publication_date"]) > _DATE
    return published_ms(value) - (0 if exact else w3c_dates.FARTHEST_ZONE_MS)


def leaves_ms(value: News) -> int:
    """Time from which an article is no longer news, in milliseconds since 1970 (PROTOCOL W4)."""
    return published_ms(value) + WINDOW_MS


def render(news: News) -> str:
    """The `<news:news>` element of a canonical article."""
    return elements.render(PREFIX, NEWS, news)


def read(xml: str) -> News | None:
    """The article in a fragment, as `render` wrote it; None if there is none."""
    found = elements.read(PREFIX, NEWS, xml)
    return found[0] if found else None
