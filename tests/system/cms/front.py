"""The address of the site: one reverse proxy before the CMS and sitemapd, which notes the hooks.

As in production, where the same host serves pages, sitemaps and hooks; Ghost 6 sends to no private
address but this one.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

Label = Callable[[str, http.client.HTTPMessage, bytes], str]
"""What a delivery is called in the tests, from its path, headers and body."""

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


class Note(NamedTuple):
    """One delivery: what the CMS sent, and what it was told."""

    label: str
    status: int
    answer: bytes
    size: int
    """Bytes of its body."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a CMS may send for each of sixty items at once


class Front:
    """Passes /v1/ and the sitemaps on to sitemapd, everything else to the CMS."""

    def __init__(self, label: Label) -> None:
        self.notes: list[Note] = []
        self.label = label
        self.cms = self.service = self.slow = self.fast = ""
        self.passed = threading.Event()
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                front._pass(self)

            do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                """The notes are the log."""

        self.server = _Server(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @contextmanager
    def overtaking(self, slow: str, fast: str) -> Iterator[None]:
        """What is done within sends `slow` and `fast`; `slow` arrives once `fast` was answered."""
        self.slow, self.fast, self.passed = slow, fast, threading.Event()
        yield
        assert self.passed.wait(60), f"no {fast}"
        self.slow = self.fast = ""

    def close(self) -> None:
        """Listen no more."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def _pass(self, asked: BaseHTTPRequestHandler) -> None:
        body = asked.rfile.read(int(asked.headers.get("content-length", 0)))
        hook = asked.path.startswith("/v1/")
        ours = hook or urlsplit(asked.path).path.endswith((".xml", "/robots.txt"))
        # The query tells apart what is configured with one address for each event.
        path = urlsplit(asked.path).path if hook else asked.path
        label = self.label(asked.path, asked.headers, body) if hook else ""
        if label and label == self.slow:
            self.passed.wait(60)
        status, headers, answer = self._ask(ours, asked, path, body)
        if hook:
            self.notes.append(Note(label, status, answer, len(body)))
        if label and label == self.fast:
            self.passed.set()
        try:
            asked.send_response(status)
            for name, value in headers:
                if name.lower() not in _HOP:
                    asked.send_header(name, value)
            asked.send_header("content-length", str(len(answer)))
            asked.end_headers()
            if asked.command != "HEAD":
                asked.wfile.write(answer)
        except OSError:
            asked.close_connection = True

    def _ask(
        self, ours: bool, asked: BaseHTTPRequestHandler, path: str, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.service if ours else self.cms, timeout=60)
        try:
            headers = {n: v for n, v in asked.headers.items() if n.lower() not in _HOP}
            connection.request(asked.command, path, body or None, headers)
            reply = connection.getresponse()
            return reply.status, reply.getheaders(), reply.read()
        except OSError:
            return 502, [], b""
        finally:
            connection.close()
