"""Loopback servers that behave like the webmaster APIs of Google, Bing and Yandex, as documented:
their JSON, their checks of credentials, quotas and paging.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

SECRET = "canary-of-the-reader"


class Account:
    """A service account with a key of its own."""

    def __init__(self) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.public = key.public_key()
        self.private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()  # fmt: skip

    @property
    def json(self) -> str:
        return json.dumps({
            "type": "service_account", "client_email": "robot@project.example",
            "private_key": self.private, "private_key_id": "k1",
            "token_uri": "https://evil.example/token",
        })  # fmt: skip


class Call(NamedTuple):
    """One request; `query` has the last value of each parameter."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str] = {}


class Webmaster:
    """A server at `url`; each of `faults` is answered once, before anything else is looked at."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.faults: list[Answer] = []
        self.down: Answer | None = None
        self._asked = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                parts = urlsplit(self.path)
                size = int(self.headers.get("Content-Length") or 0)
                query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
                headers = {name.lower(): value for name, value in self.headers.items()}
                call = Call(self.command, parts.path, query, headers, self.rfile.read(size))
                outer.calls.append(call)
                outer._asked.set()
                answer = outer.faults.pop(0) if outer.faults else outer.down or outer.answer(call)
                text = answer.body
                body = text if isinstance(text, bytes) else json.dumps(text).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = _serve  # noqa: N815  # names of the library

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def answer(self, call: Call) -> Answer:
        raise NotImplementedError

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def connected(self, seconds: float) -> bool:
        """Wait until it was asked anything; False if it was not."""
        return self._asked.wait(seconds)

    def asked(self, part: str) -> list[Call]:
        return [call for call in self.calls if part in call.path]


class Google(Webmaster):
    """Search Console: tokens of a service account, sitemaps.list, urlInspection.index.inspect.

    https://developers.google.com/webmaster-tools/limits: 2,000 inspections of a property each day.
    """

    def __init__(self, public_key: Any, site: str = "https://www.example.com/") -> None:
        self.public_key, self.site, self.quota = public_key, site, 2_000
        self.pages: dict[str, dict[str, Any]] = {}
        self.sitemaps: list[dict[str, Any]] = []
        self.tokens = {SECRET}
        super().__init__()

    def answer(self, call: Call) -> Answer:
        if call.path == "/token":
            return self._token(call)
        if call.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return _google(
                401, "UNAUTHENTICATED", "Request had invalid authentication credentials."
            )
        if call.path.startswith("/webmasters/v3/sites/"):
            site = unquote(call.path.split("/")[4])
            if site != self.site:
                return self._foreign()
            # A property without sitemaps has no such member.
            return Answer(200, {"sitemap": self.sitemaps} if self.sitemaps else {})
        if call.path == "/v1/urlInspection/index:inspect" and call.method == "POST":
            return self._inspect(json.loads(call.body))
        return _google(404, "NOT_FOUND", "Requested entity was not found.")

    def _token(self, call: Call) -> Answer:
        form = parse_qs(call.body.decode())
        try:
            claim = jwt.decode(
                form["assertion"][0], self.public_key, ["RS256"], audience=f"{self.url}/token"
            )
        except (jwt.PyJWTError, KeyError):
            return Answer(400, {"error": "invalid_grant", "error_description": "Invalid JWT"})
        if "webmasters" not in claim["scope"]:
            return Answer(400, {"error": "invalid_scope"})
        return Answer(200, {"access_token": SECRET, "expires_in": 3599, "token_type": "Bearer"})

    def _inspect(self, asked: dict[str, str]) -> Answer:
        if asked["siteUrl"] != self.site or not asked["inspectionUrl"].startswith(self.site):
            return self._foreign()
        if self.quota <= 0:
            said = f"Quota exceeded for {self.site}."
            return _google(429, "RESOURCE_EXHAUSTED", said)
        self.quota -= 1
        status = self.pages.get(asked["inspectionUrl"], UNKNOWN_TO_GOOGLE)
        result = {
            "inspectionResultLink": "https://search.google.com/search-console/inspect?x=y",
            "indexStatusResult": status,
            "mobileUsabilityResult": {"verdict": "VERDICT_UNSPECIFIED"},
        }  # fmt: skip
        return Answer(200, {"inspectionResult": result})

    def _foreign(self) -> Answer:
        said = "You do not own this site, or the inspected URL is not part of this property."
        return _google(403, "PERMISSION_DENIED", said)


UNKNOWN_TO_GOOGLE = {
    "verdict": "NEUTRAL", "coverageState": "URL is unknown to Google",
    "robotsTxtState": "ROBOTS_TXT_STATE_UNSPECIFIED",
    "indexingState": "INDEXING_STATE_UNSPECIFIED", "pageFetchState": "PAGE_FETCH_STATE_UNSPECIFIED",
}  # fmt: skip


def indexed(crawled: str, url: str = "") -> dict[str, Any]:
    """Of a page that Google lists, crawled at this time."""
    return {
        "verdict": "PASS", "coverageState": "Submitted and indexed", "robotsTxtState": "ALLOWED",
        "indexingState": "INDEXING_ALLOWED", "lastCrawlTime": crawled,
        "pageFetchState": "SUCCESSFUL", "googleCanonical": url, "userCanonical": url,
        "sitemap": ["https://www.example.com/sitemap.xml"], "crawledAs": "MOBILE",
    }  # fmt: skip


def not_indexed(coverage: str, crawled: str = "") -> dict[str, Any]:
    """Of a page that Google does not list, for this reason."""
    found = {"verdict": "NEUTRAL", "coverageState": coverage, "robotsTxtState": "ALLOWED"}
    return found | ({"lastCrawlTime": crawled} if crawled else {})


def _google(code: int, status: str, message: str) -> Answer:
    return Answer(code, {"error": {"code": code, "message": message, "status": status}})


NEVER = "/Date(-62135568000000-0800)/"
"""The first of the year 1, as .NET writes a date that is not set."""


class Bing(Webmaster):
    """Bing Webmaster over JSON: the key in the query, all answers in `d`, errors with a code."""

    def __init__(self, site: str = "https://www.example.com") -> None:
        self.site, self.feeds = site, list[dict[str, Any]]()
        self.pages: dict[str, dict[str, Any]] = {}
        super().__init__()

    def answer(self, call: Call) -> Answer:
        if call.query.get("apikey") != SECRET:
            return Answer(400, {"ErrorCode": 3, "Message": "ERROR!!! InvalidApiKey"})
        if call.query.get("siteUrl") != self.site:
            return Answer(400, {"ErrorCode": 14, "Message": "ERROR!!! NotAuthorized"})
        if call.path.endswith("/GetFeeds"):
            return Answer(200, {"d": self.feeds})
        if call.path.endswith("/GetUrlInfo"):
            return Answer(200, {"d": self.pages.get(call.query["url"], bing_page())})
        return Answer(404, b"<html><title>Not found</title></html>")


def bing_page(crawled_ms: int | None = None, found_ms: int | None = None, status: int = 0) -> Any:
    """A UrlInfo, crawled and discovered at these times."""
    crawled, found = (
        NEVER if at is None else f"/Date({at}-0800)/" for at in (crawled_ms, found_ms)
    )
    return {
        "__type": "UrlInfo:#Microsoft.Bing.Webmaster.Api", "AnchorCount": 0, "DiscoveryDate": found,
        "DocumentSize": 0, "HttpStatus": status, "IsPage": True, "LastCrawledDate": crawled,
        "TotalChildUrlCount": 0, "Url": "",
    }  # fmt: skip


def bing_feed(url: str, crawled_ms: int, urls: int) -> dict[str, Any]:
    return {
        "__type": "Feed:#Microsoft.Bing.Webmaster.Api", "Compressed": False, "FileSize": 1_000,
        "LastCrawled": f"/Date({crawled_ms}-0800)/", "Status": "Success",
        "Submitted": f"/Date({crawled_ms - 1}-0800)/", "Type": "Sitemap", "Url": url,
        "UrlCount": urls,
    }  # fmt: skip


class Yandex(Webmaster):
    """Yandex Webmaster v4: OAuth; lists by `offset` and `limit` of 100; sitemaps by `from`."""

    def __init__(self, host: str = "https:www.example.com:443") -> None:
        self.host = host
        self.lists: dict[str, list[dict[str, Any]]] = {}
        self.sitemaps: list[dict[str, Any]] = []
        self.counted: Counter[str] = Counter()
        super().__init__()

    def answer(self, call: Call) -> Answer:
        if call.headers.get("authorization") != f"OAuth {SECRET}":
            return _yandex(403, "INVALID_OAUTH_TOKEN")
        prefix = f"/v4/user/7/hosts/{self.host}/"
        path = unquote(call.path)
        if not path.startswith(prefix):
            return _yandex(404, "HOST_NOT_FOUND")
        kind, limit = path.removeprefix(prefix), int(call.query.get("limit", 10))
        if not 1 <= limit <= 100:
            return _yandex(400, "FIELD_VALIDATION_ERROR")
        self.counted[kind] += 1
        if kind == "sitemaps":
            names = [each["sitemap_id"] for each in self.sitemaps]
            after = call.query.get("from")
            start = names.index(after) + 1 if after in names else 0
            return Answer(200, {"sitemaps": self.sitemaps[start : start + limit]})
        rows, offset = self.lists.get(kind, []), int(call.query.get("offset", 0))
        return Answer(200, {"count": len(rows), "samples": rows[offset : offset + limit]})


def _yandex(status: int, code: str) -> Answer:
    return Answer(status, {"error_code": code, "error_message": "as it says"})


_Server = TypeVar("_Server", bound=Webmaster)


@contextmanager
def serving(server: _Server) -> Iterator[_Server]:
    """A running server, closed at the end."""
    try:
        yield server
    finally:
        server.close()
