"""Engines that are read back may answer anything: it is understood, or one error of ours."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from shared.config.sites.site import Site
from shared.domain.index_status import IndexStatus
from shared.sitemap import w3c_dates
from worker.http.exchange import AllowedHosts, OutboundAnswer, OutboundRequest
from worker.notify.engines.google import SearchConsole
from worker.readback.engine_reader import EngineReader, ReadingOverError, UnreadError
from worker.readback.registry import engine_readers

BASE = "https://www.example.com/"
SECRET = "canary-of-the-reader"
MOST = 100
"""Requests after which the budget is spent: an answer may always say that there is more."""

_SITE = Site.model_validate({
    "base_url": BASE, "web_root": Path("public"), "tokens": ["0123456789abcdef"],
    "readback": {
        "google": {"credentials": f"env:{SECRET}"}, "bing": {"key": SECRET},
        "yandex": {"token": SECRET, "user_id": 1, "host_id": "https:www.example.com:443"},
    },
})  # fmt: skip


def answers(data: bytes) -> None:
    """The status and body of every answer of each engine."""
    head, _, body = data.partition(b"\0")
    status = int(head) if head.isdigit() and len(head) == 3 else 200
    given, asked = OutboundAnswer(status, {}, body), [0]
    whole = body.count(SECRET[:12].encode()) == body.count(SECRET.encode())

    def outbound(request: OutboundRequest, allowed: AllowedHosts) -> OutboundAnswer:
        assert SECRET not in request.shown
        assert request.url.split("/")[2] in allowed.hosts
        return given

    def spend() -> None:
        asked[0] += 1
        if asked[0] > MOST:
            raise ReadingOverError

    for name, reader in engine_readers(
        _SITE, outbound, dict.fromkeys(_SITE.readback.engines, spend)
    ).items():
        account = reader._account
        if isinstance(account, SearchConsole):  # to sign for a token takes 30 ms
            account._token, account._until = "a-token", math.inf
        asked[0] = 0
        for read in (_sitemaps, _page if reader.asked else _pages):
            try:
                read(reader)
            except ReadingOverError:
                assert asked[0] > MOST
            except UnreadError as error:
                assert str(error).isprintable()
                assert name == "google" or not whole or SECRET[:12] not in str(error)


def _sitemaps(reader: EngineReader) -> None:
    for each in reader.sitemaps():
        assert each.url.isprintable()
        assert len(each.url) <= 2_048
        _shown(each.read_ms)
        for number in (each.errors, each.warnings, each.urls):
            assert number is None or isinstance(number, int)


def _page(reader: EngineReader) -> None:
    _status(reader.page(BASE + "a"))


def _pages(reader: EngineReader) -> None:
    for loc, status in reader.pages():
        loc.encode()
        _status(status)


def _status(status: IndexStatus) -> None:
    assert status.said.isprintable()
    assert len(status.said) < 300
    _shown(status.crawled_ms)


def _shown(at_ms: int) -> None:
    assert at_ms >= 0
    w3c_dates.from_epoch_s(at_ms // 1000)


def _said(status: int, body: Any) -> bytes:
    return f"{status}".encode() + b"\0" + json.dumps(body).encode()


_INDEXED = {"verdict": "PASS", "coverageState": "x", "lastCrawlTime": "2026-01-01T00:00:00Z"}
_DAY = "2016-01-01T00:00:00,000+0300"
SEEDS = (
    _said(200, {"sitemap": [{"path": "\ud800", "errors": "1", "contents": [{"submitted": "9"}]}]}),
    _said(200, {"inspectionResult": {"indexStatusResult": _INDEXED}}),
    _said(200, {"d": [{"Url": BASE, "LastCrawled": "/Date(99999999999999-0800)/"}]}),
    _said(200, {"d": {"HttpStatus": 200, "LastCrawledDate": "/Date(1-0800)/"}}),
    _said(200, {"sitemaps": [{"sitemap_id": "c7", "last_access_date": _DAY}] * 100}),
    _said(200, {"samples": [{"url": "\udfff", "http_code": 200}] * 100}),
    _said(400, {"ErrorCode": 3, "Message": f"no such key {SECRET}"}),
    _said(429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}),
    b"200\0[]", b"200\0null", b"200\0" + b"[" * 900,
)  # fmt: skip
