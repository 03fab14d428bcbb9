"""Parser of one line of an access log: combined or JSON in, a request or None out; never an error.

Combined is the default of nginx and Apache: address, identity and user, time, request, status,
size, referrer, user agent. A virtual host may stand before it and anything may follow.

JSON lines are objects. The first present member of each list counts:

- time: `time`, `ts`, `timestamp`, `@timestamp`, `time_iso8601`, `time_local`, `msec`, `StartUTC`,
  `EdgeStartTimestamp`: ISO 8601 with a zone, the combined log's form, or a number since 1970
  (seconds, or by its size milli-, micro- or nanoseconds);
- target: `request_uri`, `uri`, `url`, `path`, `RequestPath`, `ClientRequestURI`, or `request` as
  the request's first line;
- method: `request_method`, `method`, `RequestMethod`, `ClientRequestMethod`;
- status: `status`, `status_code`, `DownstreamStatus`, `EdgeResponseStatus`;
- user agent: `http_user_agent`, `user_agent`, `userAgent`, `useragent`, `agent`,
  `request_User-Agent`, `ClientRequestUserAgent`;
- address: `client_ip`, `remote_addr`, `remote_ip`, `clientip`, `ClientHost`, `ClientIP`;
- host: `http_host`, `host`, `vhost`, `RequestHost`, `ClientRequestHost`.

Caddy nests them in `request`, with the user agent in its `headers`. The other names are those of
nginx's variables, of Traefik and of Cloudflare's Logpush.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple


class LoggedRequest(NamedTuple):
    """An answered request: `at_ms` in ms since 1970 UTC, `target` as it was requested.

    `host` is empty if the log does not state it; `address` is the log's value, unchecked.
    """

    at_ms: int
    method: str
    target: str
    status: int
    agent: str
    address: str
    host: str = ""


# nginx escapes a quote as \x22, Apache as \": neither leaves a bare one.
_QUOTED = r'"((?:[^"\\]++|\\.)*+)"'
_COMBINED = re.compile(
    rf"(.*?) \[([0-9]{{2}}/[^\]]{{23}})\] {_QUOTED} ([0-9]{{3}}) \S+ {_QUOTED} {_QUOTED}"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_402_300_799_999  # of the year 9999
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+")

_WHEN = (
    "time", "ts", "timestamp", "@timestamp", "time_iso8601", "time_local", "msec", "StartUTC",
    "EdgeStartTimestamp",
)  # fmt: skip
_WHAT = ("request_uri", "uri", "url", "path", "RequestPath", "ClientRequestURI")
_METHOD = ("request_method", "method", "RequestMethod", "ClientRequestMethod")
_STATUS = ("status", "status_code", "DownstreamStatus", "EdgeResponseStatus")
_AGENT = (
    "http_user_agent", "user_agent", "userAgent", "useragent", "agent", "request_User-Agent",
    "ClientRequestUserAgent",
)  # fmt: skip
_FROM = ("client_ip", "remote_addr", "remote_ip", "clientip", "ClientHost", "ClientIP")
_HOST = ("http_host", "host", "vhost", "RequestHost", "ClientRequestHost")


def parse(line: bytes) -> LoggedRequest | None:
    """The request of one line, None if it cannot be parsed."""
    return _json(line) if line.lstrip()[:1] == b"{" else _combined(line)


def _combined(line: bytes) -> LoggedRequest | None:
    # Latin-1 decodes any bytes; all compared text is ASCII.
    match = _COMBINED.match(line.decode("latin-1"))
    if match is None:
        return None
    before, time, request, status, _, agent = match.groups()
    at_ms = _clock_ms(time)
    said = request.split(" ")
    if at_ms is None or len(said) < 2:
        return None
    words = before.split(" ")
    # A virtual host before the address, as Apache's vhost_combined has it.
    host = words.pop(0) if len(words) > 3 and _ADDRESS.fullmatch(words[1]) else ""
    return _request(at_ms, said[0], said[1], int(status), agent, words[0], host)


def _json(line: bytes) -> LoggedRequest | None:
    try:
        record = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    nested = record.get("request")
    if isinstance(nested, dict):
        record = {**nested, **{name: value for name, value in record.items() if name != "request"}}
        nested = None
        headers = record.get("headers")
        agents = headers.get("User-Agent") if isinstance(headers, dict) else None
        if isinstance(agents, list) and agents:
            record["http_user_agent"] = agents[0]
    said = nested.split(" ") if isinstance(nested, str) else []
    at_ms, target = _moment_ms(_first(record, _WHEN)), _first(record, _WHAT)
    method = _first(record, _METHOD)
    if len(said) > 1:
        method, target = said[0], said[1]
    status = _whole(_first(record, _STATUS))
    if at_ms is None or status is None or not isinstance(target, str):
        return None
    texts = [_text(_first(record, names)) for names in (_AGENT, _FROM, _HOST)]
    return _request(at_ms, _text(method) or "GET", target, status, *texts)


def _request(
    at_ms: int, method: str, target: str, status: int, agent: str, address: str, host: str
) -> LoggedRequest | None:
    if not 0 <= at_ms <= _LAST_MS:
        return None
    if not target.startswith("/") and "://" in target:  # to a proxy (RFC 9112, 3.2.2)
        host, _, rest = target.partition("://")[2].partition("/")
        target = "/" + rest
    return LoggedRequest(at_ms, method, target, status, agent, address, host)


def _first(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if (value := record.get(name)) not in (None, "", "-"):
            return value
    return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{3}", value) else None


def _moment_ms(value: object) -> int | None:
    if isinstance(value, str):
        if (at_ms := _clock_ms(value)) is not None:
            return at_ms
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return _scaled_ms(value)
        # A time without a zone may be any of two dozen.
        return (moment - _EPOCH) // timedelta(milliseconds=1) if moment.tzinfo else None
    return _scaled_ms(value) if isinstance(value, (int, float)) else None


def _scaled_ms(value: str | float) -> int | None:
    """Milliseconds of a number since 1970, in seconds or a smaller unit by its size."""
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number) or number < 0:
        return None
    for unit, most in ((1000.0, 1e11), (1.0, 1e14), (1e-3, 1e17), (1e-6, 1e20)):
        if number < most:
            return int(number * unit)
    return None


def _clock_ms(text: str) -> int | None:
    """Milliseconds since 1970 of `21/Nov/2026:10:00:05 +0100`; None for other texts."""
    if len(text) != 26 or not text[18:20].isdigit():
        return None
    minute = _minute_s(text[:17] + text[20:])
    return None if minute is None else (minute + int(text[18:20])) * 1000


# Lines of one minute follow each other, and the date is half the cost of parsing a line.
@lru_cache(1024)
def _minute_s(text: str) -> int | None:
    """Seconds since 1970 of `21/Nov/2026:10:00 +0100`; None for other texts."""
    match = re.fullmatch(
        r"(\d\d)/([A-Z][a-z][a-z])/(\d{4}):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)", text, re.ASCII
    )
    if match is None or match[2] not in _MONTHS:
        return None
    try:
        day = date(int(match[3]), _MONTHS.index(match[2]) + 1, int(match[1]))
    except ValueError:
        return None
    zone = (int(match[7]) * 60 + int(match[8])) * (-1 if match[6] == "-" else 1)
    minutes = int(match[4]) * 60 + int(match[5]) - zone
    return (day - _EPOCH.date()).days * 86_400 + minutes * 60
