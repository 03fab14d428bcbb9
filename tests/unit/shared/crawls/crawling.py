"""Access log lines as web servers write them, and what was published, for tests of crawls."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
BINGBOT = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.3"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


class Facts(NamedTuple):
    """What was published when, as the store would tell it."""

    of_files: Iterable[tuple[str, int]] = ()
    of_pages: Iterable[tuple[str, int]] = ()

    def files(self) -> Iterable[tuple[str, int]]:
        return self.of_files

    def changes(self) -> Iterable[tuple[str, int]]:
        return self.of_pages


def clock(at_ms: int, zone_min: int = 0) -> str:
    """A moment as combined logs have it, on a clock `zone_min` ahead of UTC."""
    zone = timezone(timedelta(minutes=zone_min))
    at = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)).astimezone(zone)
    return f"{at.day:02}/{MONTHS[at.month - 1]}/{at.year:04}:{at:%H:%M:%S %z}"


def combined(
    at_ms: int, target: str, agent: str = GOOGLEBOT, *, status: int = 200, zone_min: int = 0,
    address: str = "66.249.66.1", method: str = "GET", before: str = "", after: str = "",
) -> bytes:  # fmt: skip
    """One line, with a virtual host before and other fields after it where given."""
    return (
        f'{before}{address} - - [{clock(at_ms, zone_min)}] "{method} {target} HTTP/1.1" {status}'
        f' 512 "-" "{agent}"{after}\n'
    ).encode()


def nginx_json(at_ms: int, target: str, agent: str = GOOGLEBOT, **members: Any) -> bytes:
    """A line of a log_format with escape=json."""
    record = {
        "msec": f"{at_ms // 1000}.{at_ms % 1000:03}", "remote_addr": "66.249.66.1",
        "request_method": "GET", "request_uri": target, "status": "200", "http_user_agent": agent,
    }  # fmt: skip
    return json.dumps(record | members).encode() + b"\n"


def caddy(at_ms: int, target: str, agent: str = GOOGLEBOT, host: str = "www.example.com") -> bytes:
    """A line of Caddy's own encoder."""
    request = {
        "remote_ip": "10.0.0.1", "client_ip": "66.249.66.1", "proto": "HTTP/2.0", "method": "GET",
        "host": host, "uri": target, "headers": {"User-Agent": [agent], "Accept": ["*/*"]},
    }  # fmt: skip
    record = {
        "level": "info", "ts": at_ms / 1000, "logger": "http.log.access.log0", "request": request,
        "duration": 0.001, "size": 512, "status": 200,
    }  # fmt: skip
    return json.dumps(record).encode() + b"\n"
