"""Search engines may answer anything: each answer means one thing, for a bounded time."""

from __future__ import annotations

import json
from pathlib import Path

from shared.config.sites.site import Site
from worker.http.exchange import LONGEST_WAIT_S, AllowedHosts, OutboundAnswer, OutboundRequest
from worker.notify.engine import AnswerVerdict, NotifiedPage
from worker.notify.engines.registry import engine_apis

BASE = "https://www.example.com/"
SECRET = "canary-of-the-engine"
SECRETIVE = ("bing", "yandex", "baidu")
PAGES = [
    NotifiedPage(BASE + "a", live=True, section="jobs"),
    NotifiedPage(BASE + "b", live=True, section="jobs"),
]

_SITE = Site.model_validate({
    "base_url": BASE, "web_root": Path("public"), "tokens": ["0123456789abcdef"],
    "feed": True, "hub": "https://websubhub.com/hub", "sections": {"jobs": {}},
    "notify": {
        "hosts": ["crawler.example"],
        "indexnow": {"key": "0123456789abcdef"},
        "search_console": {"credentials": f"env:{SECRET}"},
        "bing": {"key": SECRET},
        "yandex": {"token": SECRET, "user_id": 1, "host_id": "https:www.example.com:443"},
        "baidu": {"token": SECRET, "plain_http": True},
        "websub": {},
        "crawler": {"url": "https://crawler.example/?sitemap={sitemap}"},
    },
})  # fmt: skip


def answers(data: bytes) -> None:
    """The status, `Retry-After` and body of an answer, to each engine."""
    head, _, body = data.partition(b"\0")
    number, _, wait = head.partition(b" ")
    status = int(number) if number.isdigit() and len(number) == 3 else 200
    # A part of it that the answer made up is not one that was cut off here.
    whole = body.count(SECRET[:12].encode()) == body.count(SECRET.encode())
    given = OutboundAnswer(status, {"retry-after": wait.decode("latin-1")}, body)

    def outbound(request: OutboundRequest, allowed: AllowedHosts) -> OutboundAnswer:
        assert SECRET not in request.shown
        assert request.url.split("/")[2] in allowed.hosts
        return given

    for name, api in engine_apis(_SITE, outbound, lambda: [BASE + "sitemap.xml"]).items():
        if name == "search_console":  # to sign for a token takes 30 ms
            outcome = api.heard(lambda api=api: api.judge(given))
        else:
            outcome = api.submit(PAGES, api.endpoints[0])
        if name in SECRETIVE and whole:
            assert SECRET[:12] not in outcome.detail
        assert len(outcome.detail) < 400
        assert outcome.detail.isprintable()
        assert not outcome.detail.startswith("not understood"), name
        assert outcome.wait is None or 0 <= outcome.wait <= LONGEST_WAIT_S
        assert outcome.told or not outcome.rejected
        if status in {403, 404, 422} and body[:1] != b"{" and name != "search_console":
            held = {AnswerVerdict.FORBIDDEN, AnswerVerdict.REFUSED, AnswerVerdict.HELD}
            assert outcome.verdict in held, name


def _said(status: int, body: object, wait: str = "") -> bytes:
    return f"{status} {wait}".encode() + b"\0" + json.dumps(body).encode()


SEEDS = (
    b"200 \0",
    b"202 \0",
    b"429 120\0slow down",
    b"503 Sat, 21 Nov 2026 12:00:00 GMT\0",
    _said(400, {"ErrorCode": 3, "Message": f"no such key {SECRET}"}),
    _said(400, {"ErrorCode": 3, "Message": "x" * 190 + SECRET}),
    _said(403, {"error": {"errors": [{"reason": "quotaExceeded"}]}}),
    _said(200, {"d": None}),
    _said(429, {"error_code": "QUOTA_EXCEEDED", "error_message": "x"}),
    _said(200, {"remain": 1, "success": 1, "not_same_site": [BASE], "not_valid": []}),
    _said(400, {"error": 400, "message": "over quota"}),
    b"200 \0" + b'{"error": 1, "message": ' + b"[" * 900 + b"]" * 900 + b"}",
)
