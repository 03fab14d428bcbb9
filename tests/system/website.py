"""A small website on loopback, for workers that look at its pages: as a real one, it answers, moves
pages, forbids to index them, and asks to wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class WebPage(NamedTuple):
    """What one path answers: the text of an HTML page, or `body` as it is."""

    text: str = "<p>Nothing is here.</p>"
    status: int = 200
    head: str = ""
    headers: dict[str, str] = {}
    lang: str = "en"
    around: str = ""
    body: bytes | None = None

    @property
    def content(self) -> bytes:
        """The bytes of its answer."""
        html = (
            f"<!doctype html><html lang={self.lang}><head><title>T</title>{self.head}</head>"
            f"<body>{self.around}<main>{self.text}</main></body></html>"
        )
        return html.encode() if self.body is None else self.body


class Website:
    """Pages by their paths, at `base`; `asked` are the paths that were asked for, with the time."""

    def __init__(self) -> None:
        self.pages: dict[str, WebPage | Callable[[], WebPage]] = {}
        self.requests: list[tuple[str, float]] = []
        website = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                website.requests.append((self.path, time.monotonic()))
                found = website.pages.get(self.path, WebPage(status=404))
                page = found if isinstance(found, WebPage) else found()
                self.send_response(page.status)
                headers = {"Content-Type": "text/html; charset=utf-8", **page.headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(page.content)))
                self.end_headers()
                self.wfile.write(page.content)

            def log_message(self, *_: Any) -> None:
                """Keep the test's output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def asked(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [path for path, _ in self.requests]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def website() -> Iterator[Website]:
    """A running website, closed at the end."""
    site = Website()
    try:
        yield site
    finally:
        site.close()
