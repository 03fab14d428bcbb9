"""A connection that breaks, hangs or is slow: a proxy before a server (RELIABILITY F18).

Runs in threads of this process. A half of a connection is the bytes that flow one way.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Literal, Self

Where = Literal["request", "reply", "answer"]

_CHUNK = 65536
_NO_LINGER = struct.pack("ii", 1, 0)  # close() sends RST
_TAIL = 4096  # as long as a pattern may be
_UP_S = 5.0


class _Rule:
    """Break `times` connections on which `pattern` is seen."""

    def __init__(self, pattern: bytes, times: int, where: Where) -> None:
        self.pattern, self.left, self.where = pattern, times, where


class _Connection:
    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.lost = False  # bytes are missing: it cannot be used again
        self.asked = False  # the request of an "answer" rule has passed
        self.halves = 2
        self._gone = threading.Lock()

    def abort(self) -> bool:
        """Break it on both sides, at once; whether it was whole until now."""
        return self.close(_NO_LINGER)

    def close(self, linger: bytes = b"") -> bool:
        """End it on both sides; whether it was whole until now."""
        if not self._gone.acquire(blocking=False):
            return False
        for end in (self.client, self.server):
            if linger:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RD)  # wakes the thread that reads from it
            end.close()
        return True


class Proxy:
    """Listens on loopback (or on the Unix socket `listen`) and passes on to `upstream`.

    `upstream` is "host:port" or the path of a Unix socket; `address` is told in the same way. On a
    Unix socket there is no RST: the other side sees an end of file or EPIPE. `dropped` counts the
    connections broken by `abort_on` and `cut`, `swallowed` the bytes lost by `drop`.
    """

    def __init__(self, upstream: str, listen: str = "127.0.0.1:0") -> None:
        self._upstream = upstream
        self._lock = threading.Lock()
        self._open: set[_Connection] = set()
        self._rules: list[_Rule] = []
        self._delay, self._drop, self._cut, self._over = 0.0, False, False, False
        self.dropped = self.swallowed = 0
        self._listener = _socket(listen)
        if listen.startswith("/"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(listen)
        self._listener.bind(_where(listen))
        self._listener.listen(128)
        name = self._listener.getsockname()
        self.address = name if isinstance(name, str) else f"{name[0]}:{name[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def abort_on(self, pattern: bytes, times: int = 1, where: Where = "reply") -> None:
        """Break the next `times` connections on which `pattern` is seen.

        "reply": before the reply that contains it passes on; "request": before the request does,
        so that the server never sees it; "answer": the request passes, what comes back does not.
        """
        with self._lock:
            self._rules.append(_Rule(pattern, times, where))

    def pending(self) -> int:
        """How many connections the rules have yet to break."""
        with self._lock:
            return sum(rule.left for rule in self._rules)

    def delay(self, seconds: float) -> None:
        """Let each chunk of bytes wait, each way; the rate falls to one chunk in that time."""
        self._delay = seconds

    def drop(self, on: bool) -> None:
        """Swallow everything both ways, while connections stay and new ones are accepted.

        At the end, those that miss bytes are broken: the rest could not be understood.
        """
        self._drop = on
        if not on:
            for each in self._connections():
                if each.lost:
                    each.abort()

    def cut(self) -> None:
        """Break every connection, and each new one at once, until `heal`."""
        self._cut = True
        for each in self._connections():
            self._break(each)

    def heal(self) -> None:
        """No more faults of any kind."""
        self._cut, self._delay = False, 0.0
        with self._lock:
            self._rules.clear()
        self.drop(False)

    def close(self) -> None:
        """Stop listening, break what is open."""
        self._over = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self.address.startswith("/"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.address)
        for each in self._connections():
            each.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connections(self) -> list[_Connection]:
        with self._lock:
            return list(self._open)

    def _break(self, connection: _Connection) -> None:
        if connection.abort():
            with self._lock:
                self.dropped += 1

    def _accept(self) -> None:
        for client in _accepted(self._listener):
            server = _socket(self._upstream)
            for end in (client, server):
                if end.family == socket.AF_INET:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(client, server)
            try:
                server.settimeout(_UP_S)
                server.connect(_where(self._upstream))
                server.settimeout(None)
            except OSError:
                connection.abort()  # as the server itself would refuse
                continue
            with self._lock:
                self._open.add(connection)
            if self._cut or self._over:
                self._break(connection)
            halves = ((client, server, "request"), (server, client, "reply"))
            for source, sink, way in halves:
                threading.Thread(
                    target=self._pass_on, args=(connection, source, sink, way), daemon=True
                ).start()

    def _pass_on(
        self, connection: _Connection, source: socket.socket, sink: socket.socket, way: Where
    ) -> None:
        tail = b""
        try:
            while data := source.recv(_CHUNK):
                if self._delay:
                    time.sleep(self._delay)
                if self._drop:
                    connection.lost = True
                    with self._lock:
                        self.swallowed += len(data)
                    continue
                if self._breaks(connection, tail, data, way):
                    self._break(connection)
                    break
                tail = (tail + data)[-_TAIL:]
                sink.sendall(data)
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            connection.abort()
        finally:
            with self._lock:
                connection.halves -= 1
                done = connection.halves == 0
                if done:
                    self._open.discard(connection)
            if done:
                connection.close()

    def _breaks(self, connection: _Connection, tail: bytes, data: bytes, way: Where) -> bool:
        """Whether a rule says that `data`, which came after `tail`, may not pass."""
        if way == "reply" and connection.asked:
            return True
        with self._lock:
            for rule in self._rules:
                half = "request" if rule.where == "answer" else rule.where
                before = tail[max(0, len(tail) - len(rule.pattern) + 1) :]
                if half != way or not rule.left or rule.pattern not in before + data:
                    continue
                rule.left -= 1
                if rule.where != "answer":
                    return True
                connection.asked = True
        return False


def _accepted(listener: socket.socket) -> Iterator[socket.socket]:
    while True:
        try:
            yield listener.accept()[0]
        except OSError:
            return


def _socket(address: str) -> socket.socket:
    return socket.socket(socket.AF_UNIX if address.startswith("/") else socket.AF_INET)


def _where(address: str) -> str | tuple[str, int]:
    host, _, port = address.rpartition(":")
    return address if address.startswith("/") else (host, int(port))
