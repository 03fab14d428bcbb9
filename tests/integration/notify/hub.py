"""A WebSub hub on loopback, by the specification: it verifies, distributes and forgets.

https://www.w3.org/TR/websub/, 5 to 7; publishers tell it of a feed as
worker/notify/engines/websub.py does.
"""

from __future__ import annotations

import hmac
import http.client
import http.server
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

Form = dict[str, str]


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def call(method: str, url: str, body: bytes = b"", headers: Form | None = None) -> Reply:
    """One request over HTTP; names of the answer's headers in lower case."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, headers or {})
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, names, answer.read())
    finally:
        connection.close()


class _Server:
    """An HTTP server at `url` until it is closed."""

    def __init__(self, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class Hub(_Server):
    """`verifying` is how it answers a request: `before` it asked back, `after`, or `never`."""

    def __init__(self) -> None:
        self.asked: list[Form] = []
        self.verified: list[Reply] = []
        self.sent: list[Reply] = []
        self.subscribers: dict[tuple[str, str], str] = {}
        """(topic, callback) -> secret."""
        self.lease_s, self.how, self.status, self.verifying = 864_000, "sha256", 202, "before"
        self._threads: list[threading.Thread] = []
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = hub.request(dict(parse_qsl(body.decode())))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(Handler)

    def close(self) -> None:
        super().close()
        for thread in self._threads:
            thread.join()

    def request(self, form: Form) -> int:
        """What is answered to a subscriber or a publisher."""
        self.asked.append(form)
        if form["hub.mode"] == "publish":
            self.distribute(form["hub.url"])
            return 204
        if self.status == 202 and self.verifying == "before":
            self.verify(form)
        elif self.status == 202 and self.verifying == "after":
            thread = threading.Thread(target=self.verify, args=(form,))
            self._threads.append(thread)
            thread.start()
        return self.status

    def verify(self, form: Form, **change: str) -> Reply:
        """Ask the subscriber whether it meant it; remember it if it did."""
        challenge = secrets.token_urlsafe(16)
        query = {
            "hub.mode": form["hub.mode"], "hub.topic": form["hub.topic"],
            "hub.challenge": challenge, "hub.lease_seconds": str(self.lease_s),
        } | {name.replace("_", ".", 1): value for name, value in change.items()}  # fmt: skip
        reply = self.back(form, query)
        self.verified.append(reply)
        if 200 <= reply.status < 300 and reply.body == challenge.encode():
            whose = form["hub.topic"], form["hub.callback"]
            if form["hub.mode"] == "subscribe":
                self.subscribers[whose] = form["hub.secret"]
            else:
                self.subscribers.pop(whose, None)
        return reply

    def back(self, form: Form, query: Form, method: str = "GET") -> Reply:
        """Call the subscriber's callback; its own query stays."""
        return call(method, f"{form['hub.callback']}&{urlencode(query)}")

    def distribute(self, topic: str) -> None:
        """Fetch the feed and send it to whoever subscribed to it."""
        feed = call("GET", topic)
        kind = "application/rss+xml" if b"<rss" in feed.body else "application/atom+xml"
        for (wanted, callback), secret in list(self.subscribers.items()):
            if wanted == topic:
                self.sent.append(self.send(callback, secret, feed.body, kind))

    def send(
        self, callback: str, secret: str, body: bytes, kind: str = "application/atom+xml"
    ) -> Reply:
        digest = hmac.digest(secret.encode(), body, self.how).hex()
        headers = {"Content-Type": kind, "X-Hub-Signature": f"{self.how}={digest}"}
        return call("POST", callback, body, headers)


class Publisher(_Server):
    """Serves the files of `root`; `links` are the Link headers that come with each."""

    def __init__(self, root: Path) -> None:
        self.links: list[str] = []
        publisher = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *given: Any) -> None:
                super().__init__(*given, directory=str(root))

            def end_headers(self) -> None:
                for link in publisher.links:
                    self.send_header("Link", link)
                super().end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(Handler)


@contextmanager
def running(server: Any) -> Iterator[Any]:
    """Closes it in the end."""
    try:
        yield server
    finally:
        server.close()
