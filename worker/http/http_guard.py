"""HTTP client for search engines: allowed hosts only, checked addresses, small and short answers.

RELIABILITY T22. The connection uses the checked address and does not resolve the name again. No
redirect is followed, no proxy or other setting of the environment is used, every request has a
connection of its own. All of it, name resolution included, takes DEADLINE_S at most.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import httpcore

from shared.errors import BarredError, OutboundError
from worker.http.addresses import Address, is_open, is_private
from worker.http.exchange import AllowedHosts, OutboundAnswer, OutboundRequest, excerpt

DEADLINE_S = 5.0
LARGEST = 64 * 1024
"""Maximum size of an answer in bytes."""

_HEADERS = {"User-Agent": "sitemapd-notify", "Accept-Encoding": "identity", "Connection": "close"}

Resolve = Callable[[str, int], Sequence[str]]


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of `host` by the system resolver; OSError if it has none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(at[0]) for *_, at in found]


def ask(
    request: OutboundRequest,
    allowed: AllowedHosts,
    *,
    resolve: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
    seconds: float = DEADLINE_S,
) -> OutboundAnswer:
    """Send one request within `seconds`.

    Raises BarredError if it may not be sent, OutboundError without an answer.
    """
    deadline = time.monotonic() + seconds
    parts = urlsplit(request.url)
    if (parts.hostname or "") not in allowed.hosts:
        raise BarredError(f"{parts.hostname} is none of the hosts that may be asked")
    if parts.scheme != "https" and not (parts.scheme == "http" and any(allowed[1:])):
        raise BarredError(f"{parts.hostname} may only be asked over https")
    network = _Checked(allowed, parts.scheme == "http", deadline, resolve)
    options: Any = {"connect": seconds, "read": seconds, "write": seconds, "pool": seconds}
    pool = httpcore.ConnectionPool(
        ssl_context=tls or _trusted(), network_backend=network, retries=0,
        http1=True, http2=False,
    )  # fmt: skip
    try:
        with pool, pool.stream(
            request.method, request.url, headers=[*{**_HEADERS, **request.headers}.items()],
            content=request.body or None, extensions={"timeout": options},
        ) as answer:  # fmt: skip
            body = _bounded(answer.iter_stream(), partly=request.partly)
            return OutboundAnswer(answer.status, _joined(answer.headers), body)
    except (
        httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError,
        ValueError,
    ) as error:  # fmt: skip
        raise OutboundError(f"no answer from {parts.hostname}: {_reason(error)}") from None


@lru_cache
def _trusted() -> ssl.SSLContext:
    """Return the system's certificate authorities; reading them takes 20 ms."""
    return ssl.create_default_context()


def _reason(error: Exception) -> str:
    if isinstance(error, (httpcore.TimeoutException, TimeoutError)):
        return f"nothing complete within {DEADLINE_S:.0f} s"
    if isinstance(error, (httpcore.LocalProtocolError, ValueError)):
        # A header that cannot be sent may hold a secret, and the message quotes it (RELIABILITY
        # T30).
        return "the request is none that HTTP can carry; is there a line break in a secret?"
    return excerpt(str(error)) or type(error).__name__


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by name; repeated ones mean the same as one list (RFC 9110, 5.3)."""
    found: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _bounded(chunks: Iterable[bytes], *, partly: bool) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > LARGEST:
            if partly:
                break
            raise OutboundError(f"an answer of more than {LARGEST} bytes")
    return bytes(body[:LARGEST])


class _Checked(httpcore.NetworkBackend):
    """Network backend that connects to checked addresses only."""

    def __init__(
        self, allowed: AllowedHosts, plain: bool, deadline: float, resolve: Resolve
    ) -> None:
        self._allowed, self._plain, self._deadline = allowed, plain, deadline
        self._resolve, self._system = resolve, httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002  # the deadline is sooner
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failed: Exception = OSError(f"{host} has no address")
        for address in self._addresses(host, port):
            try:
                stream = self._system.connect_tcp(
                    str(address), port, _left(self._deadline), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
                continue
            return _Timed(stream, self._deadline)
        raise failed

    def _addresses(self, host: str, port: int) -> list[Address]:
        """Return all addresses of `host`; one that is not allowed bars the name (BarredError)."""
        found = [*map(ipaddress.ip_address, _in_time(self._resolve, host, port, self._deadline))]
        for address in found:
            if not self._may(address):
                raise BarredError(f"{host} is at {address}, where no request may go")
        return found

    def _may(self, address: Address) -> bool:
        if is_private(address):
            return self._allowed.private
        return is_open(address) and (self._allowed.http or not self._plain)


class _Timed(httpcore.NetworkStream):
    """A connection whose every step ends at the deadline, so that a slow answer cannot extend
    it.
    """

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, _left(self._deadline))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        # A peer that reads a byte now and then would block a write of the library without end.
        connection: socket.socket = self._stream.get_extra_info("socket")
        rest = memoryview(buffer)
        while rest:
            connection.settimeout(_left(self._deadline))
            rest = rest[connection.send(rest) :]

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        left = _left(self._deadline)
        return _Timed(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout
    return left


def _in_time(resolve: Resolve, host: str, port: int, deadline: float) -> Sequence[str]:
    """Return the result of `resolve` if it comes in time: the system resolver has no timeout."""
    said: list[Sequence[str] | Exception] = []

    def run() -> None:
        try:
            said.append(resolve(host, port))
        except (OSError, ValueError) as error:
            said.append(error)

    thread = threading.Thread(target=run, name="resolve", daemon=True)
    thread.start()
    thread.join(_left(deadline))
    if not said:
        raise httpcore.ConnectTimeout
    if isinstance(said[0], Exception):
        raise said[0]
    return said[0]
