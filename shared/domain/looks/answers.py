"""Answers of pages, and what they mean for a sitemap: only pages that answer 200, may be indexed
and are their own canonical belong there (PROTOCOL L8).
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import NamedTuple

INDEXABLE_TYPES = frozenset({
    "text/html", "application/xhtml+xml", "application/pdf", "text/plain", "text/xml",
    "application/xml", "image/svg+xml",
})  # fmt: skip
"""Types that search engines index as pages, besides documents of offices."""

_OFFICE = ("application/vnd.", "application/msword", "application/rtf", "application/epub")
_MAY_PASS = frozenset({408, 425, 429})


class Grade(IntEnum):
    """Result of a look. ODD: worth a warning. UNSURE: not there, which may pass. BROKEN: the page
    does not belong in a sitemap.
    """

    GOOD = 0
    ODD = 1
    UNSURE = 2
    BROKEN = 3


class PageAnswer(NamedTuple):
    """Answer of one page: `status` (0: none, for the reason `fault`), `redirect_to` of a redirect;
    who said `noindex` (empty: nobody), another `canonical` URL (empty: none, or itself), the
    `language` it names, and its `content_type`. `print` is the fingerprint of what readers see;
    empty: none was made.
    """

    status: int
    fault: str = ""
    redirect_to: str = ""
    noindex: str = ""
    canonical: str = ""
    language: str = ""
    content_type: str = ""
    print: bytes = b""
    wait_s: float | None = None
    """Seconds that the server asks to wait."""


class Verdict(NamedTuple):
    """Meaning of an answer, and why, in words."""

    grade: Grade
    why: str


def judge(answer: PageAnswer, codes: Collection[str] = ()) -> Verdict:
    """Return the meaning of `answer` for a page listed as the version for the languages `codes`."""
    status = answer.status
    if not status:
        return Verdict(Grade.UNSURE, f"no answer: {answer.fault}")
    if 300 <= status < 400 and status != 304:
        where = f" to {answer.redirect_to}" if answer.redirect_to else ""
        return Verdict(Grade.BROKEN, f"redirects{where} ({status})")
    if status >= 500 or status in _MAY_PASS:
        return Verdict(Grade.UNSURE, f"answers {status}, which may pass")
    if status != 200:
        return Verdict(Grade.BROKEN, f"answers {status}")
    if answer.noindex:
        return Verdict(Grade.BROKEN, f"noindex in its {answer.noindex}")
    if answer.canonical:
        return Verdict(Grade.BROKEN, f"its canonical URL is {answer.canonical}")
    return _oddity(answer, codes)


def _oddity(answer: PageAnswer, codes: Collection[str]) -> Verdict:
    kind = answer.content_type
    if kind not in INDEXABLE_TYPES and not kind.startswith(_OFFICE):
        return Verdict(Grade.ODD, f"is no page, but {kind or 'of no type'}")
    stated = {code.partition("-")[0].lower() for code in codes} - {"x"}
    language = answer.language.partition("-")[0].lower()
    if language and stated and language not in stated:
        listed = ", ".join(sorted(codes))
        return Verdict(Grade.ODD, f"is in {answer.language}, and listed for {listed}")
    return Verdict(Grade.GOOD, "200 and indexable")
