"""Requests as WSGI has them, made of what ASGI says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from deploy.web.buffered_wsgi import BufferedWsgi, environ

SCOPE: dict[str, Any] = {
    "type": "http", "method": "POST", "raw_path": b"/%C3%BC/a%20b/%ff", "query_string": b"a=%20",
    "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", "80"),
    "client": ("127.0.0.1", "1"), "headers": [],
}  # fmt: skip


def test_paths_are_unescaped_byte_by_byte_and_queries_are_left() -> None:
    found = environ(SCOPE, b"body")

    assert found["PATH_INFO"].encode("latin-1") == b"/\xc3\xbc/a b/\xff"
    assert found["QUERY_STRING"] == "a=%20"
    assert found["wsgi.input"].read() == b"body"


def test_headers_that_repeat_are_one() -> None:
    headers = [(b"x-a", b"1"), (b"cookie", b"a=1"), (b"x-a", b"\xff"), (b"cookie", b"b=2")]
    found = environ(SCOPE | {"headers": [*headers, (b"content-length", b"4")]}, b"body")

    assert (found["HTTP_X_A"], found["HTTP_COOKIE"]) == ("1,\xff", "a=1;b=2")
    assert found["CONTENT_LENGTH"] == "4"


def exchange(app: Any, headers: list[tuple[bytes, bytes]], *parts: bytes) -> list[dict[str, Any]]:
    """What an application sends for a body that comes in these parts."""
    sent: list[dict[str, Any]] = []
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(BufferedWsgi(app, lambda: 10)(SCOPE | {"headers": headers}, receive, send))
    return sent


@pytest.mark.parametrize(
    ("headers", "given"),
    [
        ([(b"content-length", b"6")], b"abcdef"),
        ([(b"content-length", b"11")], b""),
        ([(b"content-length", b"-1")], b""),
        ([(b"transfer-encoding", b"chunked")], b""),
        ([], b""),
    ],
)
def test_an_application_is_given_what_it_may_read(
    headers: list[tuple[bytes, bytes]], given: bytes
) -> None:
    bodies = []

    def app(request: Any, start: Any) -> list[bytes]:
        bodies.append(request["wsgi.input"].read())
        start("200 OK", [("X-A", "b")])
        return [b"one", b"two"]

    head, body = exchange(app, headers, b"abc", b"def")

    assert bodies == [given]
    assert (head["status"], head["headers"]) == (200, [(b"X-A", b"b")])
    assert body == {"type": "http.response.body", "body": b"onetwo"}


def test_a_body_that_ends_early_is_to_be_sent_again_and_never_judged() -> None:
    """Its signature would be wrong, and 401 ends the tries of many senders."""

    def app(_request: Any, _start: Any) -> list[bytes]:
        raise AssertionError("asked")

    head, body = exchange(app, [(b"content-length", b"9")], b"abc", b"def")

    assert head["status"] == 503
    assert {b"retry-after", b"connection"} <= {name for name, _ in head["headers"]}
    assert json.loads(body["body"])["code"] == "interrupted"


def test_a_long_answer_is_sent_part_by_part_and_closed() -> None:
    class Parts:
        closed = False

        def __iter__(self) -> Any:
            return iter([b"x" * 65_536, b"y" * 65_536, b"z"])

        def close(self) -> None:
            Parts.closed = True

    def app(_request: Any, start: Any) -> Parts:
        start("200 OK", [])
        return Parts()

    bodies = exchange(app, [])[1:]

    assert b"".join(each["body"] for each in bodies) == b"x" * 65_536 + b"y" * 65_536 + b"z"
    assert [each.get("more_body", False) for each in bodies] == [True, True, True, False]
    assert Parts.closed
