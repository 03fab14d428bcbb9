"""Dates and times: the part of the W3C profile that the sitemap schema accepts (PROTOCOL M1, C8).

Accepted are `YYYY-MM-DD`, and `YYYY-MM-DDThh:mm`, `...:ss` and `...:ss.f` (a fraction of any
length) followed by `Z`, `+hh:mm` or `-hh:mm`. Any text gives a value or DateError, nothing else.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple

from shared.errors import DateError

_ACCEPTED = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?(?:Z|([+-])([0-9]{2}):([0-9]{2})))?"
)
_CANONICAL = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?"
)
"""A canonical date or time, if there is such a day."""
_YEAR_OR_MONTH = re.compile(r"(?!0000)[0-9]{4}(?:-(?:0[1-9]|1[0-2]))?")
_LIKE_DATE_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(.)[0-9]{2}:[0-9:.]*(.*)")

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY_S = 86_400
_FIRST_S = (date.min.toordinal() - _EPOCH_ORDINAL) * _DAY_S
_LAST_S = (date.max.toordinal() - _EPOCH_ORDINAL + 1) * _DAY_S - 1
_WIDEST_ZONE_MIN = 14 * 60  # the widest of xsd:dateTime
FARTHEST_ZONE_MS = _WIDEST_ZONE_MIN * 60_000
"""Time in ms before midnight UTC at which a date begins in the farthest time zone."""
SKEW_MS = 300_000
"""Lead in ms of a sender's clock before its lastmod counts as in the future (PROTOCOL M5)."""
_SHOWN = 40  # characters of a refused text in its message


class _Moment(NamedTuple):
    seconds: int  # since 1970 UTC; negative before
    millis: int


def canonical(text: str) -> str:
    """The published form of a date: `YYYY-MM-DD`, or UTC `YYYY-MM-DDThh:mm:ssZ`.

    A date stays a date, a time becomes UTC and loses its fraction (PROTOCOL M1, C17).
    Raises DateError, whose message states the remedy.
    """
    if _CANONICAL.fullmatch(text):  # most are: three times as fast as reading them
        with suppress(ValueError):
            date.fromisoformat(text[:_DATE])
            return text
    moment = _read(text)
    return from_epoch_s(moment.seconds)


def is_year_or_month(text: str) -> bool:
    """True for the W3C profile's `YYYY` and `YYYY-MM`, which the sitemap schema does not accept
    (PROTOCOL M1).
    """
    return _YEAR_OR_MONTH.fullmatch(text) is not None


def in_future(text: str, now_ms: int) -> bool:
    """True if the canonical `text` lies after `now_ms` (ms since 1970) by more than SKEW_MS.

    A date alone may be that of the farthest time zone, 14 hours ahead of UTC.
    """
    ahead_ms = SKEW_MS if len(text) > _DATE else FARTHEST_ZONE_MS
    # Canonical dates and times sort as text.
    return text > _moment((now_ms + ahead_ms) // 1000)[: len(text)]


def epoch_ms(text: str) -> int:
    """Milliseconds since 1970-01-01 UTC; a date counts as its midnight UTC.

    Raises DateError for what `canonical` refuses, and for moments before 1970.
    """
    moment = _read(text)
    if moment.seconds < 0:
        raise _refused(text, "it lies before 1970")
    return moment.seconds * 1000 + moment.millis


def from_epoch_s(seconds: int) -> str:
    """`YYYY-MM-DDThh:mm:ssZ` for seconds since 1970-01-01 UTC.

    Raises DateError outside the years 0001 to 9999.
    """
    if not _FIRST_S <= seconds <= _LAST_S:
        raise DateError("the moment lies outside the years 0001 to 9999")
    days, second = divmod(seconds, _DAY_S)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return (
        f"{date.fromordinal(_EPOCH_ORDINAL + days).isoformat()}T{hour:02}:{minute:02}:{second:02}Z"
    )


# The events of a batch arrive within the same few seconds.
_moment = lru_cache(16)(from_epoch_s)
_DATE = len("2026-11-21")


def from_rfc822(text: str) -> str | None:
    """The date of an RSS feed as W3C text with its own offset, None if it states no time with a
    known zone.
    """
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    if moment.tzinfo is None and text.endswith("-0000"):  # UTC, local zone unknown (RFC 5322)
        moment = moment.replace(tzinfo=UTC)
    return moment.isoformat(timespec="seconds") if moment.tzinfo else None


def _read(text: str) -> _Moment:
    match = _ACCEPTED.fullmatch(text)
    if match is None:
        raise _refused(text, _remedy(text))
    day, hour, minute, second, fraction, sign, zone_hour, zone_minute = match.groups()
    try:
        seconds = (date.fromisoformat(day).toordinal() - _EPOCH_ORDINAL) * _DAY_S
    except ValueError:
        raise _refused(text, "there is no such day") from None
    if hour is None:
        return _Moment(seconds, 0)
    if hour > "23":
        raise _refused(text, "hours run from 00 to 23; 24:00 is 00:00 of the next day")
    if minute > "59":
        raise _refused(text, "minutes run from 00 to 59")
    if second is not None and second > "59":
        raise _refused(text, "seconds run from 00 to 59; write a leap second as 59")
    seconds += int(hour) * 3600 + int(minute) * 60 + int(second or 0)
    if sign is not None:
        seconds -= _zone_s(text, sign, zone_hour, zone_minute)
        if not _FIRST_S <= seconds <= _LAST_S:
            raise _refused(text, "in UTC it lies outside the years 0001 to 9999")
    millis = int(fraction[:3].ljust(3, "0")) if fraction else 0
    return _Moment(seconds, millis)


def _zone_s(text: str, sign: str, hour: str, minute: str) -> int:
    minutes = int(hour) * 60 + int(minute)
    if minute > "59" or minutes > _WIDEST_ZONE_MIN:
        raise _refused(text, "zones run from -14:00 to +14:00")
    return (-minutes if sign == "-" else minutes) * 60


def _remedy(text: str) -> str:
    if text != text.strip():
        return "remove the space around it"
    if not text.isascii():
        return "write it with ASCII digits and signs"
    if _YEAR_OR_MONTH.fullmatch(text):
        return "send a full date, YYYY-MM-DD: the sitemap schema takes no year or month alone"
    near = _LIKE_DATE_TIME.fullmatch(text)
    steps = []
    if near and near[1] != "T":
        steps.append("put a capital T between date and time")
    if near and not near[2]:
        steps.append("add the zone, Z or +hh:mm")
    elif near and not re.fullmatch(r"Z|[+-][0-9]{2}:[0-9]{2}", near[2]):
        steps.append("write the zone as Z or with a colon, +hh:mm")
    return " and ".join(steps) or "send YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ"


def _refused(text: str, why: str) -> DateError:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return DateError(f"{shown!a} is no accepted date: {why}")
