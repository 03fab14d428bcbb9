"""Connections to checked addresses, of which every step ends in time (RELIABILITY T22).

A name is resolved once, by the system, and the checked address is the one connected to. Names are
not resolved with dnspython: it reads /etc/resolv.conf alone, so the names of /etc/hosts, of
containers and of nsswitch would be unknown, and all it would add is the deadline that a thread
gives here.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import httpcore

from shared.errors import BarredError
from worker.http.addresses import Address, is_open, is_private
from worker.http.exchange import AllowedHosts, Bounds

LOOK_S = 0.25
"""Seconds between two calls of `go_on` while an answer is awaited."""

_CHUNK = 65_536

Resolve = Callable[[str, int], Sequence[str]]


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of `host` by the system resolver; OSError if it has none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(at[0]) for *_, at in found]


class TimeLimit:
    """The remaining time of the exchange in progress; `go_on` aborts it by raising."""

    def __init__(self, bounds: Bounds, go_on: Callable[[], None]) -> None:
        self._bounds, self.go_on, self._end = bounds, go_on, 0.0

    def begin(self) -> None:
        """Begin an exchange."""
        self._end = time.monotonic() + self._bounds.seconds

    def exceeded(self) -> str:
        """Return which limit an exchange has exceeded, for display."""
        if time.monotonic() >= self._end:
            return f"nothing complete within {self._bounds.seconds:g} s"
        return f"silent for {self._bounds.silence:g} s"

    def left(self) -> float:
        """Return the seconds that one step may take. Raises httpcore.ReadTimeout without any."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return min(left, self._bounds.silence)


class GuardedNetwork(httpcore.NetworkBackend):
    """Network backend that connects to allowed addresses only, within the time of the exchange."""

    def __init__(
        self, allowed: AllowedHosts, limit: TimeLimit, resolve: Resolve, *, plain: bool
    ) -> None:
        """`plain` if it connects without TLS; `limit` is begun by the caller for each exchange."""
        self._allowed, self._limit, self._resolve = allowed, limit, resolve
        self._plain, self._system = plain, httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002  # the limit is sooner
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        self._limit.go_on()
        failed: Exception = OSError(f"{host} has no address")
        addresses = self._addresses(host, port)
        for before, address in enumerate(addresses):
            seconds = self._limit.left() / (len(addresses) - before)  # so that each one is tried
            try:
                stream = self._system.connect_tcp(
                    str(address), port, seconds, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
                continue
            return _TimedStream(stream, self._limit)
        raise failed

    def _addresses(self, host: str, port: int) -> list[Address]:
        """Return all addresses of `host`; one that is not allowed bars the name (BarredError)."""
        found = [*map(ipaddress.ip_address, _in_time(self._resolve, host, port, self._limit))]
        for address in found:
            if not self._may(address):
                raise BarredError(f"{host} is at {address}, where no request may go")
        return found

    def _may(self, address: Address) -> bool:
        if self._allowed.anywhere:
            return True
        if is_private(address):
            return self._allowed.private
        return is_open(address) and (self._allowed.http or not self._plain)


class _TimedStream(httpcore.NetworkStream):
    """A connection whose every step ends in time, so that a slow answer cannot extend it."""

    def __init__(self, stream: httpcore.NetworkStream, limit: TimeLimit) -> None:
        self._stream, self._limit = stream, limit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        silent = time.monotonic() + self._limit.left()
        while True:
            self._limit.go_on()
            left = min(self._limit.left(), silent - time.monotonic())
            if left <= 0:
                raise httpcore.ReadTimeout
            try:
                return self._stream.read(min(max_bytes, _CHUNK), min(left, LOOK_S))
            except httpcore.ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        # A peer that reads a byte now and then would block a write of the library without end.
        connection: socket.socket = self._stream.get_extra_info("socket")
        rest = memoryview(buffer)
        while rest:
            self._limit.go_on()
            connection.settimeout(self._limit.left())
            try:
                rest = rest[connection.send(rest) :]
            except TimeoutError as error:
                raise httpcore.WriteTimeout from error
            except OSError as error:  # the library then reads the answer that came early
                raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        left = self._limit.left()
        stream = self._stream.start_tls(ssl_context, server_hostname, left)
        return _TimedStream(stream, self._limit)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _in_time(resolve: Resolve, host: str, port: int, limit: TimeLimit) -> Sequence[str]:
    """Return the result of `resolve` if it comes in time: the system resolver has no timeout."""
    said: list[Sequence[str] | Exception] = []

    def run() -> None:
        try:
            said.append(resolve(host, port))
        except (OSError, ValueError) as error:
            said.append(error)

    thread = threading.Thread(target=run, name="resolve", daemon=True)
    thread.start()
    thread.join(limit.left())
    if not said:
        raise httpcore.ConnectTimeout
    if isinstance(said[0], Exception):
        raise said[0]
    return said[0]
