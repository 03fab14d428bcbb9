"""Senders of deliveries over connections that stay open: as many as fit, or so many a second."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

from tests.bench.service import sign

CONNECTIONS = 8
_ACCEPTED = b"HTTP/1.1 202 "


class Workload(NamedTuple):
    """What is sent: `bodies`, over and over, of `size` events and the media type `kind` each."""

    key: bytes
    bodies: Sequence[bytes]
    size: int
    kind: str


class Connection:
    """One connection. http.client would take a third of the processor from what is measured."""

    def __init__(self, address: str, path: str) -> None:
        host, _, port = address.partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"POST {path} HTTP/1.1\r\nHost: {address}\r\n"

    def post(self, body: bytes, headers: dict[str, str]) -> None:
        """Send one delivery, which must be accepted."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{self._head}{lines}content-length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._more()
        said, _, rest = answer.partition(b"\r\n\r\n")
        length = int(said.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(rest) < length:
            rest += self._more()
        assert said.startswith(_ACCEPTED), answer

    def _more(self) -> bytes:
        part = self._socket.recv(65_536)
        assert part, "the server closed the connection"
        return part

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def _deliveries(load: Workload, part: int, name: str) -> Iterator[tuple[bytes, dict[str, str]]]:
    """The deliveries of connection `part`, without end, with ids that begin with `name`."""
    for number, body in enumerate(itertools.cycle(load.bodies[part::CONNECTIONS])):
        yield sign(load.key, body, f"{name}-{part}-{number}", load.kind)


def most(address: str, path: str, load: Workload, name: str, seconds: float) -> tuple[int, float]:
    """How many events were accepted in `seconds` over CONNECTIONS connections, each of which sends
    the next delivery when the last was answered; and how long (s) it took.
    """
    began = time.perf_counter()

    def send(part: int) -> int:
        count = 0
        with closing(Connection(address, path)) as connection:
            for delivery in _deliveries(load, part, name):
                connection.post(*delivery)
                count += load.size
                if time.perf_counter() - began > seconds:
                    break
        return count

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        count = sum(pool.map(send, range(CONNECTIONS)))
    return count, time.perf_counter() - began


def steady(
    address: str, path: str, load: Workload, name: str, per_s: float, over: Callable[[], bool]
) -> float:
    """Send `per_s` events a second until `over`; how many a second were accepted.

    A delivery that is late is sent at once: what is late does not become less.
    """
    began = time.perf_counter()
    pause = CONNECTIONS * load.size / per_s

    def send(part: int) -> int:
        count, due = 0, began + pause * part / CONNECTIONS
        with closing(Connection(address, path)) as connection:
            for delivery in _deliveries(load, part, name):
                time.sleep(max(0.0, due - time.perf_counter()))
                if over():
                    break
                connection.post(*delivery)
                count, due = count + load.size, due + pause
        return count

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        count = sum(pool.map(send, range(CONNECTIONS)))
    return count / (time.perf_counter() - began)
