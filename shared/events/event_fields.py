"""Checks of the members of an event that every page has, one by one (DESIGN 6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from shared.clock import now_ms
from shared.errors import DateError, UrlError
from shared.sitemap import urls, w3c_dates
from shared.sitemap.entry import CHANGEFREQS, priority_text
from shared.sitemap.extensions.report import ValueReport
from shared.sitemap.urls import Base

PAGE_TYPES = ("upsert", "delete")
RESYNC = "resync"
TYPES = (*PAGE_TYPES, RESYNC)
RESYNC_MEMBERS = ("type", "section", "prefix", "version")
MAX_ID = 512
MOST_BYTES = 1_048_576
"""Maximum bytes of one published entry: as much as a request can hold."""

YANDEX, BAIDU = "yandex", "baidu"
YANDEX_LOC, BAIDU_LOC = 1_024, 256
"""Longest URLs that these engines read, in characters and in bytes (PROTOCOL L2, N8)."""

EARLIEST_VERSION = 946_684_800_000
"""2000-01-01 in milliseconds since 1970: a smaller number has another unit or meaning."""

MAX_VERSION = (1 << 47) - 1
"""The latest version that can be stored, in milliseconds since 1970 (the year 6429)."""

MAX_AHEAD_MS = 24 * 3600 * 1000
"""Maximum lead in ms of a version over its event's arrival: wrong clocks and zones lead by less. A
version farther ahead is ignored, a stored one too (RELIABILITY T37).
"""

_YEAR_MS, _LONGEST = 31_556_952_000, 10**20
_MEANT = "version is milliseconds since 1970; "
_NO_DAY = "names no day, and the sitemap schema takes no year or month alone: send YYYY-MM-DD"
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class EventRules:
    """Rules of one site for events: URLs under `base`, pages in `sections` (names).

    `news` are the sections for news among them; with `deprecated`, deprecated tags are published;
    `most_bytes` is the maximum size of an entry in the smallest section's files; `engines` are
    those whose own limits cause warnings; `clock` returns milliseconds since 1970.
    """

    base: Base
    sections: frozenset[str]
    news: frozenset[str] = frozenset()
    deprecated: bool = False
    most_bytes: int = MOST_BYTES
    engines: frozenset[str] = frozenset()
    clock: Callable[[], int] = now_ms


class EventFields(ValueReport):
    """The members of one item during its checks, with the faults and warnings found so far.

    `loc` is the canonical URL of the page once it has been checked.
    """

    def __init__(self, item: Mapping[str, object], rules: EventRules) -> None:
        self.item, self.rules = item, rules
        self.loc: str | None = None
        # As ValueReport does: most events have no extension, and need nothing else of it.
        self.faults, self.warnings = [], []

    def text(self, name: str) -> str | None:
        """The string under `name`; None if it is missing or, with a fault, not a string."""
        value = self.item.get(name)
        if value is None or isinstance(value, str):
            return value
        self.fault(name, "type", "must be a string")
        return None

    def refuse(self, names: Iterable[str], known: str) -> None:
        """Report each of `names` as no member of an event."""
        for name in names:
            self.fault(name[:64], "unknown-field", f"not a member of an event; known: {known}")

    def require(self, kind: object) -> None:
        """Report an event of `kind` that does not name its page or scope."""
        if kind == "upsert" and self.item.get("loc") is None:
            self.fault("loc", "PROTOCOL L1", "an upsert needs the absolute URL of the page")
        if kind == "delete" and self.item.get("loc") is self.item.get("id") is None:
            self.fault("loc", "required", "a delete needs a loc, an id, or both")
        if kind == RESYNC:
            self._require_scope()
        elif self.item.get("prefix") is not None:
            self.fault("prefix", "event-type", "only a resync has one")

    def _require_scope(self) -> None:
        """Report a resync that names more than one section, or one prefix of URLs, or neither."""
        for name in self.item.keys() - set(RESYNC_MEMBERS):
            known = ", ".join(RESYNC_MEMBERS)
            self.fault(name[:64], "event-type", f"a resync has none; it may have {known}")
        section = self.item.get("section")
        if section is not None and self.item.get("prefix") is not None:
            self.fault("prefix", "event-type", "give section or prefix, not both")
        if isinstance(section, str) and section in self.rules.news:
            detail = f"{section} lists news of pages that are in other sections: resync these"
            self.fault("section", "PROTOCOL W4", detail)


def _type(members: EventFields) -> str:
    value = members.item.get("type")
    if value in TYPES:
        return str(value)
    members.fault("type", "event-type", f"must be one of {', '.join(TYPES)}")
    return ""


def _loc(members: EventFields) -> str | None:
    text = members.text("loc")
    if text is None:
        return None
    try:
        loc = members.loc = urls.canonical(text, members.rules.base)
    except UrlError as error:
        members.fault("loc", f"PROTOCOL {error.rule}", error.detail)
        return None
    if members.rules.engines:
        _warn_of_length(members, loc)
    return loc


def _warn_of_length(members: EventFields, loc: str) -> None:
    engines, length = members.rules.engines, len(loc)
    if YANDEX in engines and length > YANDEX_LOC:
        members.warn(
            "loc", "PROTOCOL L2", f"{length} characters; Yandex reads URLs of up to {YANDEX_LOC}"
        )
    if BAIDU in engines and length > BAIDU_LOC:  # canonical URLs are ASCII
        members.warn("loc", "PROTOCOL N8", f"{length} bytes; Baidu reads URLs of up to {BAIDU_LOC}")


def _prefix(members: EventFields) -> str | None:
    """The prefix of the URLs of some pages, in the form of loc."""
    text = members.text("prefix")
    if text is None:
        return None
    try:
        return urls.canonical(text, members.rules.base)
    except UrlError as error:
        members.fault("prefix", f"PROTOCOL {error.rule}", error.detail)
        return None


def _canonical(members: EventFields) -> str | None:
    """The canonical URL in the form of loc; one on another site stays as it is."""
    text = members.text("canonical")
    if text is None:
        return None
    if not text.lower().startswith(("http://", "https://")):
        members.fault("canonical", "PROTOCOL L1", "must be an absolute URL, or left out")
        return None
    try:
        return urls.canonical(text, members.rules.base)
    except UrlError:
        return text


def ident(members: EventFields, name: str = "id") -> str | None:
    """The sender's identifier under `name`: 1 to MAX_ID characters, or an integer."""
    value = members.item.get(name)
    if type(value) is int and abs(value) < 10 ** (MAX_ID - 1):
        return str(value)
    if value is None:
        return None
    if not isinstance(value, str):
        members.fault(name, "type", "must be a string or an integer")
        return None
    if not 0 < len(value) <= MAX_ID:
        members.fault(name, "length", f"must have 1 to {MAX_ID} characters")
    elif _SURROGATE.search(value):
        members.fault(name, "RELIABILITY T9", "half of a surrogate pair is no text: remove it")
    return value


def _section(members: EventFields) -> str | None:
    text = members.text("section")
    if text is None or text in members.rules.sections:
        return text
    known = ", ".join(sorted(members.rules.sections))
    members.fault("section", "section", f"not configured for this site; configured: {known}")
    return None


def _version(members: EventFields) -> int | None:
    given = members.item.get("version")
    try:
        value = w3c_dates.epoch_ms(given) if isinstance(given, str) else given
    except DateError as error:
        members.fault("version", "PROTOCOL M1", str(error))
        return None
    if value is None:
        return None
    if type(value) is not int or value < 0:
        members.fault("version", "version", "must be a W3C datetime or milliseconds since 1970")
        return None
    latest = members.rules.clock() + MAX_AHEAD_MS
    if value > latest:
        members.fault("version", "version", f"{_MEANT}{_ahead(given, value, latest)}")
    elif value < EARLIEST_VERSION and given == value:
        if EARLIEST_VERSION <= value * 1_000 <= latest:
            detail = f"{_MEANT}{value} looks like seconds: send {value * 1_000}"
            members.fault("version", "version", detail)
        else:
            detail = f"{_MEANT}{value} is before every event without one"
            members.warn("version", "version", detail)
    return value


def _ahead(given: object, value: int, latest: int) -> str:
    """The unit in which `value` (ms), beyond `latest` (ms), may have been meant, or its year."""
    for unit, per_ms in (("microseconds", 1_000), ("nanoseconds", 1_000_000)):
        if EARLIEST_VERSION <= value // per_ms <= latest:
            return f"{given} looks like {unit}: send {value // per_ms}"
    most = f"{MAX_AHEAD_MS // 3_600_000} hours ahead of this clock"
    if value >= _LONGEST:  # Python formats no integer of thousands of digits
        return f"at most {most}"
    if value < latest + _YEAR_MS:
        return f"{given} is more than {most}"
    return f"{given} is in the year {1970 + value // _YEAR_MS}; at most {most} is taken"


def _lastmod(members: EventFields) -> str | None:
    text = members.text("lastmod")
    if text is None:
        return None
    if w3c_dates.is_year_or_month(text):
        members.warn("lastmod", "PROTOCOL M1", f"left out: {text} {_NO_DAY}")
        return None
    try:
        lastmod = w3c_dates.canonical(text)
    except DateError as error:
        members.fault("lastmod", "PROTOCOL M1", str(error))
        return None
    if w3c_dates.in_future(lastmod, members.rules.clock()):
        members.warn("lastmod", "PROTOCOL M5", f"left out: {lastmod} lies in the future")
    return lastmod


def _changefreq(members: EventFields) -> str | None:
    text = members.text("changefreq")
    if text is not None and text not in CHANGEFREQS:
        known = ", ".join(sorted(CHANGEFREQS))
        members.fault("changefreq", "PROTOCOL M8", f"must be one of {known}")
    return text


def _priority(members: EventFields) -> str | None:
    value = members.item.get("priority")
    text = priority_text(value)
    if value is not None and text is None:
        members.fault("priority", "PROTOCOL M8", "must be a decimal from 0.0 to 1.0")
    return text


def _noindex(members: EventFields) -> bool:
    value = members.item.get("noindex", False)
    if not isinstance(value, bool):
        members.fault("noindex", "type", "must be true or false")
    return value is True


CHECKS: Mapping[str, Callable[[EventFields], object]] = {
    "type": _type, "loc": _loc, "id": ident, "section": _section, "version": _version,
    "lastmod": _lastmod, "changefreq": _changefreq, "priority": _priority, "noindex": _noindex,
    "canonical": _canonical, "prefix": _prefix,
}  # fmt: skip
