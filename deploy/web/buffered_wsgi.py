"""Run a WSGI application behind an asynchronous server, so that slow clients hold no thread.

A thread is taken once the body is complete, and is free again once the response is made; files are
sent chunk by chunk. Every body and every response has a deadline (RELIABILITY T34). Measured with
eight threads that read bodies themselves: eight stalled bodies, or readers that do not read,
delayed every other request for as long as the clients chose.
"""

from __future__ import annotations

import asyncio
import io
import json
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

from deploy.web.write_deadline import limit_writes
from webhook.problems import PROBLEMS, RETRY_AFTER_S, document

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

BODY_S = 10.0
"""Seconds for a whole body, counted from the end of its head."""
WRITE_S = 10.0
"""Seconds within which a reader must accept some bytes."""
LEAST_BYTES_S = 4096
"""Bytes a second that a reader must accept on average, after WRITE_S."""

_THREADS, _FILE_THREADS = 8, 2
_REST_BYTES = 4 * 1024 * 1024
_AT_ONCE = 65_536

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class BufferedAnswer(NamedTuple):
    """A response of the application: its head, the beginning of its body, and the rest if any."""

    status: int
    headers: list[tuple[bytes, bytes]]
    begin: bytes
    rest: Iterator[bytes] | None
    close: Callable[[], None]


class BufferedWsgi:
    """`app` as an ASGI application, for bodies of up to `most()` bytes; `app` must refuse longer
    ones by their announced length, and chunked ones.

    The rest of a refused body is read after the response, up to 4 MiB: if the connection were
    closed meanwhile, the response could be lost, and the client or its proxy would repeat a request
    that is refused each time.
    """

    def __init__(self, app: WSGIApplication, most: Callable[[], int]) -> None:
        self._app, self._most = app, most
        self._pool = ThreadPoolExecutor(_THREADS, "request")
        self._files = ThreadPoolExecutor(_FILE_THREADS, "file")
        self._limited = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request; other protocols are ignored."""
        if scope["type"] != "http":
            return
        if not self._limited:
            self._limited = True
            limit_writes(int(scope["server"][1]), WRITE_S)
        loop = asyncio.get_running_loop()
        wanted = self._wanted(scope)
        try:
            async with asyncio.timeout(BODY_S):
                body = await _read(receive, wanted) if wanted else b""
        except TimeoutError:
            await _refuse(send, "timeout")
            return
        if wanted and len(body) < wanted:
            await _refuse(send, "interrupted")
            return
        answer = await loop.run_in_executor(self._pool, self._answer, environ(scope, body))
        try:
            await self._send(answer, send)
        finally:
            if answer.rest is not None:
                await loop.run_in_executor(self._files, answer.close)
        if wanted is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(BODY_S):
                    await _read(receive, _REST_BYTES)

    def _wanted(self, scope: Scope) -> int | None:
        """Return the number of body bytes to read, None if the application will refuse the body."""
        found = dict(scope["headers"])
        length = found.get(b"content-length", b"")
        if b"transfer-encoding" in found:
            return None
        if not length:
            return 0
        if not length.isdigit() or len(length) > 18 or int(length) > self._most():
            return None
        return int(length)

    def _answer(self, request: WSGIEnvironment) -> BufferedAnswer:
        """Return the application's response; runs in one of the threads."""
        status, head = 500, list[tuple[bytes, bytes]]()

        def start(line: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> Any:
            nonlocal status, head
            status = int(line.partition(" ")[0])
            head = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers]

        answered = self._app(request, start)
        close = getattr(answered, "close", _nothing)
        begin, rest = b"", None
        try:
            parts = iter(answered)
            for part in parts:
                begin += part
                if len(begin) >= _AT_ONCE:
                    rest = parts
                    break
        except BaseException:
            close()
            raise
        if rest is None:
            close()
        return BufferedAnswer(status, head, begin, rest, close)

    async def _send(self, answer: BufferedAnswer, send: Send) -> None:
        """Send the response. Raises TimeoutError if the client accepts nothing, or less than
        LEAST_BYTES_S.
        """
        loop, began, sent = asyncio.get_running_loop(), time.monotonic(), 0
        head = {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
        await send(head)
        part, rest = answer.begin, answer.rest
        while rest is not None and part:
            async with asyncio.timeout(WRITE_S):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            sent += len(part)
            if time.monotonic() - began > WRITE_S + sent / LEAST_BYTES_S:
                raise TimeoutError
            part = await loop.run_in_executor(self._files, next, rest, b"")
        await send({"type": "http.response.body", "body": part})


def _nothing() -> None:
    return None


async def _read(receive: Receive, most: int) -> bytes:
    """Return the body, or the part that came before the client disconnected; about `most` bytes at
    most.
    """
    parts, read, more = [], 0, True
    while more and read < most:
        message = await receive()
        part = message.get("body", b"")
        parts.append(part)
        read += len(part)
        more = message.get("more_body", False)
    return b"".join(parts)


async def _refuse(send: Send, code: str) -> None:
    """Answer in place of the application, which has not seen the request, and close the connection.

    A body is cut off when its client disconnects or this process is stopped: the response tells the
    client to send the request again, not that its signature is wrong.
    """
    headers = [
        (b"content-type", b"application/problem+json"), (b"connection", b"close"),
        (b"retry-after", str(RETRY_AFTER_S).encode()),
    ]  # fmt: skip
    body = json.dumps(document(code, "", secrets.token_hex(8))).encode()
    status = PROBLEMS[code].status
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def environ(scope: Scope, body: bytes) -> WSGIEnvironment:
    """Return the request as a PEP 3333 environment."""
    host, port = (*(scope.get("server") or ("", "")),)[:2]
    client, client_port = (*(scope.get("client") or ("", "")),)[:2]
    found: WSGIEnvironment = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client,
        "REMOTE_PORT": str(client_port),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for raw, value in scope["headers"]:
        name, text = _variable(raw), value.decode("latin-1")
        if name in found:
            text = f"{found[name]}{';' if name == 'HTTP_COOKIE' else ','}{text}"
        found[name] = text
    return found


@lru_cache(256)
def _variable(header: bytes) -> str:
    """Return the name of a header in a PEP 3333 environment."""
    name = header.decode("latin-1").upper().replace("-", "_")
    return name if name in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{name}"
