"""Loopback servers that answer like a CMS: a function of what was asked, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Asked(NamedTuple):
    """One request: its path and parameters, its headers by names in lower case, its body."""

    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""


class Reply(NamedTuple):
    """One answer; `value` is sent as JSON, bytes as they are. `length` is what it claims to be."""

    value: Any
    status: int = 200
    headers: dict[str, str] = {}
    length: int | None = None


NOT_FOUND = Reply({"code": "rest_no_route"}, 404)


@contextmanager
def served(answer: Callable[[Asked], Reply]) -> Iterator[str]:
    """The address of a server that gives the answers of `answer`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self, body: bytes = b"") -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = answer(Asked(parts.path, dict(parse_qsl(parts.query)), headers, body))
            value = reply.value
            sent = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(reply.status)
            length = len(sent) if reply.length is None else reply.length
            for name, text in {"Content-Length": str(length), **reply.headers}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(sent)

        def do_POST(self) -> None:
            self.do_GET(self.rfile.read(int(self.headers["content-length"])))

        def log_message(self, *_: object) -> None:
            """Keep the test's output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class WordPress:
    """The REST interface of a site: collections of rows by id, as the handbook describes it."""

    def __init__(self, *, pretty: bool = True) -> None:
        self.pretty = pretty
        self.rows: dict[str, dict[int, dict[str, Any]]] = {
            "posts": {}, "pages": {}, "product": {}, "blocks": {}, "categories": {}, "tags": {},
            "users": {},
        }  # fmt: skip
        self.types = {
            "post": {"rest_base": "posts", "rest_namespace": "wp/v2"},
            "page": {"rest_base": "pages"},
            "product": {"rest_base": "product", "rest_namespace": "shop/v1"},
            "attachment": {"rest_base": "media"},
            "wp_block": {"rest_base": "blocks"},
        }
        self.instead: dict[str, Callable[[Asked], Reply | None]] = {}
        self.asked: list[Asked] = []
        self.home = "https://www.example.com"

    def add(self, collection: str, ident: int, **members: Any) -> None:
        row = {"id": ident, "link": f"{self.home}/{collection}/{ident}/"}
        if collection not in {"categories", "tags", "users"}:
            row |= {"status": "publish", "modified_gmt": "2026-05-01T10:00:00"}
            row |= {"content": {"protected": False}}
        self.rows[collection][ident] = row | members

    def __call__(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        route = asked.parameters.get("rest_route")
        if self.pretty and asked.path.startswith("/wp-json"):
            route = asked.path.removeprefix("/wp-json")
        if route is None:
            return Reply(b"<!doctype html><title>Home</title>")
        instead = self.instead.get(route)
        if instead and (reply := instead(asked)):
            return reply
        if route == "/":
            return Reply({"home": self.home, "namespaces": ["wp/v2"]})
        if route == "/wp/v2/types":
            return Reply(self.types)
        name = route.rpartition("/")[2]
        shop = name == "product"
        if name not in self.rows or route != f"/{'shop/v1' if shop else 'wp/v2'}/{name}":
            return NOT_FOUND
        return self._collection(name, asked.parameters)

    def _collection(self, name: str, parameters: dict[str, str]) -> Reply:
        assert parameters["orderby"] == "id"
        assert parameters["order"] == "asc"
        size, offset = int(parameters["per_page"]), int(parameters.get("offset", 0))
        if size > 100:
            return Reply({"code": "rest_invalid_param"}, 400)
        rows = [row for _, row in sorted(self.rows[name].items())]
        total = {"X-WP-Total": str(len(rows)), "X-WP-TotalPages": str(-(-len(rows) // size))}
        wanted = {field.partition(".")[0] for field in parameters["_fields"].split(",")}
        shown = [{n: v for n, v in row.items() if n in wanted} for row in rows]
        return Reply(shown[offset : offset + size], headers=total)


class Ghost:
    """The Content API of a site with this `key`."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.rows: dict[str, list[dict[str, Any]]] = {
            "posts": [], "pages": [], "tags": [], "authors": [],
        }  # fmt: skip
        self.instead: Callable[[Asked], Reply | None] = lambda _: None

    def __call__(self, asked: Asked) -> Reply:
        if reply := self.instead(asked):
            return reply
        name = asked.path.removeprefix("/ghost/api/content/").rstrip("/")
        if asked.parameters.get("key") != self.key:
            said = {"message": "Unknown Content API Key", "type": "UnauthorizedError"}
            return Reply({"errors": [said]}, 401)
        if name not in self.rows:
            return NOT_FOUND
        size, page = min(100, int(asked.parameters["limit"])), int(asked.parameters["page"])
        rows, wanted = self.rows[name], asked.parameters["fields"].split(",")
        pages = max(1, -(-len(rows) // size))
        paging = {
            "page": page, "limit": size, "pages": pages, "total": len(rows),
            "next": page + 1 if page < pages else None, "prev": page - 1 or None,
        }  # fmt: skip
        shown = [{n: row.get(n) for n in wanted} for row in rows[(page - 1) * size : page * size]]
        return Reply({name: shown, "meta": {"pagination": paging}})
