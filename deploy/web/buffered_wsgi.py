"""A WSGI application behind an asynchronous server: what a client does not send or read in time
holds no thread.

A thread is taken when the body is there, and is free again when the answer is made; files leave
chunk by chunk. Every body and every answer has a deadline (RELIABILITY T34). Measured with eight
threads that read bodies themselves: eight stalled bodies, or readers that do not read, kept each
other request waiting for as long as they liked.
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
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

from deploy.web.write_deadline import limit_writes
from webhook.problems import PROBLEMS, RETRY_AFTER_S, document

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

BODY_S = 10.0
"""Seconds for a whole body, from its head on."""
WRITE_S = 10.0
"""Seconds in which a reader must take something."""
LEAST_BYTES_S = 4096
"""Bytes a second that a reader takes on average, after WRITE_S."""

_THREADS, _FILE_THREADS = 8, 2
_REST_BYTES = 4 * 1024 * 1024
_AT_ONCE = 65_536

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class BufferedAnswer(NamedTuple):
    """An answer of the application: its head, the beginning of its body, and the rest if any."""

    status: int
    headers: list[tuple[bytes, bytes]]
    begin: bytes
    rest: Iterator[bytes] | None
    close: Callable[[], None]


class BufferedWsgi:
    """`app` as an ASGI application, for bodies of up to `most` bytes; `app` must refuse others by
    their announced length, and chunked ones.

    What such a client still sends is read after the answer, up to 4 MiB: a connection that is
    closed meanwhile may take the answer with it, and the client, or the proxy for it, comes again
    with what was refused for good.
    """

    def __init__(self, app: WSGIApplication, most: int) -> None:
        self._app, self._most = app, most
        self._pool = ThreadPoolExecutor(_THREADS, "request")
        self._files = ThreadPoolExecutor(_FILE_THREADS, "file")
        self._limited = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing but HTTP is answered."""
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
        """How many bytes of body the application may read, None if it will refuse them."""
        found = dict(scope["headers"])
        length = found.get(b"content-length", b"")
        if b"transfer-encoding" in found:
            return None
        if not length:
            return 0
        if not length.isdigit() or len(length) > 18 or int(length) > self._most:
            return None
        return int(length)

    def _answer(self, request: WSGIEnvironment) -> BufferedAnswer:
        """What the application says, from one of the threads."""
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
        """Send it; TimeoutError if nobody takes it, or takes it by the drop."""
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
    """The body, or as much of it as came before the client went; at most about `most` bytes."""
    parts, read, more = [], 0, True
    while more and read < most:
        message = await receive()
        part = message.get("body", b"")
        parts.append(part)
        read += len(part)
        more = message.get("more_body", False)
    return b"".join(parts)


async def _refuse(send: Send, code: str) -> None:
    """Answer for the application, which has not seen the request, and close.

    A body ends early where its client went, and where this process is told to stop: such a client
    hears that it has to come again, and not that what it signed is forged.
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
    """The request as PEP 3333 has it."""
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
        name = raw.decode("latin-1").upper().replace("-", "_")
        if name not in {"CONTENT_TYPE", "CONTENT_LENGTH"}:
            name = f"HTTP_{name}"
        text = value.decode("latin-1")
        if name in found:
            text = f"{found[name]}{';' if name == 'HTTP_COOKIE' else ','}{text}"
        found[name] = text
    return found
