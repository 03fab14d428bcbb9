"""One page in the sitemap, as valid values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.sitemap.extensions.alternates import Alternates

CHANGEFREQS = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})
PRIORITY_PATTERN = (
    r"(\+?(0{1,16}(\.[0-9]{0,16})?|\.[0-9]{1,16}|0{0,16}1(\.0{0,16})?)|-0{0,16}(0\.?|\.0)0{0,16})"
)
"""An xsd:decimal from 0 to 1: signs, leading zeros, and a point without digits on one side."""

_PRIORITY = re.compile(PRIORITY_PATTERN, re.ASCII)


@dataclass(frozen=True, slots=True)
class Entry:
    """One page: `loc` canonical (shared.sitemap.urls), `lastmod` canonical
    (shared.sitemap.w3c_dates) or None.

    `changefreq` is one of CHANGEFREQS, `priority` a decimal text from `0.0` to `1.0` (PROTOCOL M8).
    The rest are canonical values of shared.sitemap.extensions.
    """

    loc: str
    lastmod: str | None = None
    changefreq: str | None = None
    priority: str | None = None
    images: tuple[Mapping[str, Any], ...] = ()
    videos: tuple[Mapping[str, Any], ...] = ()
    news: Mapping[str, Any] | None = None
    alternates: Alternates = ()


def priority_text(value: object) -> str | None:
    """`value` (number or decimal text) in the one published form, None if it is no priority.

    The scale is xsd:decimal 0.0 to 1.0 (PROTOCOL M8): `1`, `"1."`, `"+1.00"` all become `1.0`.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, int):  # no str: JSON may hold an integer of thousands of digits
        return {0: "0.0", 1: "1.0"}.get(value)
    # 0.1 + 0.2 has 17 digits, and str writes 0.00001 with an exponent.
    text = f"{value:.16f}" if isinstance(value, float) else value
    if not _PRIORITY.fullmatch(text):
        return None
    whole, _, fraction = text.lstrip("+-").partition(".")
    return f"{whole.lstrip('0') or '0'}.{fraction.rstrip('0') or '0'}"
