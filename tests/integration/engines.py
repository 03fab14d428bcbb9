"""Loopback servers that behave like search engines, the bad ones too, on plain sockets."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

Behaviour = Callable[[socket.socket, threading.Event], None]


class Asked(NamedTuple):
    """One request; names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def reply(status: int, body: bytes | Any = b"", /, **headers: str) -> Behaviour:
    """Answers with `body`, as JSON unless it is bytes; `retry_after` is Retry-After."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"Content-Length": str(len(content)), "Connection": "close"}
    lines |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return raw(f"HTTP/1.1 {status} Whatever\r\n{head}\r\n".encode() + content)


def raw(data: bytes) -> Behaviour:
    """Sends `data`, whatever it is, and hangs up."""
    return lambda connection, _: connection.sendall(data)


def hang(_: socket.socket, over: threading.Event) -> None:
    """Says nothing."""
    over.wait(60)


def drip(connection: socket.socket, over: threading.Event) -> None:
    """Says what begins like an answer, a byte at a time, for ever."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not over.wait(0.02):
        connection.sendall(b".")


class Engine:
    """A server at `url` that shows each behaviour of `script` once, and the last one ever after."""

    def __init__(self, *script: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self.script = list(script) or [reply(200)]
        self.asked: list[Asked] = []
        self.over = threading.Event()
        self.connected = threading.Event()
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._talk, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as opened:
            spoken = opened.enter_context(connection)
            if self._tls is not None:
                spoken = opened.enter_context(self._tls.wrap_socket(spoken, server_side=True))
            self.asked.append(_read(spoken))
            behave = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            self.connected.set()
            behave(spoken, self.over)


def _read(connection: socket.socket) -> Asked:
    with connection.makefile("rb") as file:
        method, target, _ = file.readline().decode().split(" ", 2)
        headers = {}
        while line := file.readline().decode().strip():
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        body = file.read(int(headers.get("content-length", 0)))
    return Asked(method, target, headers, body)


@contextmanager
def engine(*script: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[Engine]:
    """A running Engine."""
    server = Engine(*script, tls=tls)
    try:
        yield server
    finally:
        server.close()
