"""GET of one file of a site as a crawler does it, bounded in time and size (RELIABILITY T22, T31).

The host is that of the configured `base_url`; no redirect is followed, no proxy or other setting of
the environment is used. All of it takes SECONDS at most, and ends within LOOK_S of the abort of a
check.
"""

from __future__ import annotations

import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import httpcore

SECONDS = 10.0
LOOK_S = 0.25

_GZIP = 31
_CHUNK = 65_536


class NoAnswerError(Exception):
    """No complete answer; the message gives the reason, for display."""


class FetchedFile(NamedTuple):
    """One answer: `headers` by name in lower case; `body` decoded, `coding` as it was sent.

    `body` is cut one byte beyond the requested size.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    coding: str


def fetch(url: str, most: int, go_on: Callable[[], None], *, gzip: bool = False) -> FetchedFile:
    """Return the answer at `url`, with at most `most` + 1 bytes of body; with `gzip`, accept gzip.

    `go_on` is called repeatedly, and aborts the request by raising. Raises NoAnswerError.
    """
    headers = {
        "User-Agent": "sitemapd-check", "Connection": "close",
        "Accept-Encoding": "gzip" if gzip else "identity",
    }  # fmt: skip
    network = _Patient(time.monotonic() + SECONDS, go_on)
    pool = httpcore.ConnectionPool(
        ssl_context=_trusted(), network_backend=network, retries=0, http1=True, http2=False
    )
    limits = dict.fromkeys(("connect", "read", "write", "pool"), SECONDS)
    try:
        with pool, pool.stream(
            "GET", url, headers=[*headers.items()], extensions={"timeout": limits}
        ) as answer:  # fmt: skip
            said = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in answer.headers
            }
            coding = said.get("content-encoding", "identity").strip().lower()
            body = _decoded(answer.iter_stream(), coding, most)
            return FetchedFile(answer.status, said, body, coding)
    except (
        httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError,
        ValueError, zlib.error,
    ) as error:  # fmt: skip
        raise NoAnswerError(_reason(error)) from None


@lru_cache
def _trusted() -> ssl.SSLContext:
    """Return the system's certificate authorities; reading them takes 20 ms."""
    return ssl.create_default_context()


def _reason(error: Exception) -> str:
    if isinstance(error, (httpcore.TimeoutException, TimeoutError)):
        return f"no whole answer within {SECONDS:.0f} s"
    text = "".join(c if c.isprintable() else " " for c in str(error))[:200]
    return text or type(error).__name__


def _decoded(chunks: Iterable[bytes], coding: str, most: int) -> bytes:
    inflate = zlib.decompressobj(_GZIP) if coding in {"gzip", "x-gzip"} else None
    body = bytearray()
    for chunk in chunks:
        body += chunk if inflate is None else inflate.decompress(chunk, most + 1 - len(body))
        if len(body) > most:
            return bytes(body[: most + 1])
    return bytes(body)


class _Patient(httpcore.NetworkBackend):
    """Network backend that connects within the remaining time."""

    def __init__(self, deadline: float, go_on: Callable[[], None]) -> None:
        self._deadline, self._go_on = deadline, go_on
        self._system = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002  # the deadline is sooner
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        self._go_on()
        left = _left(self._deadline)
        stream = self._system.connect_tcp(host, port, left, local_address, socket_options)
        return _Stream(stream, self._deadline, self._go_on)


class _Stream(httpcore.NetworkStream):
    """A connection that ends at the deadline, at any speed of the answer, or when `go_on`
    raises.
    """

    def __init__(
        self, stream: httpcore.NetworkStream, deadline: float, go_on: Callable[[], None]
    ) -> None:
        self._stream, self._deadline, self._go_on = stream, deadline, go_on

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        while True:
            self._go_on()
            left = _left(self._deadline)
            try:
                return self._stream.read(min(max_bytes, _CHUNK), min(left, LOOK_S))
            except httpcore.ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        # A request of 200 bytes: it never waits.
        self._stream.write(buffer, _left(self._deadline))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        left = _left(self._deadline)
        stream = self._stream.start_tls(ssl_context, server_hostname, left)
        return _Stream(stream, self._deadline, self._go_on)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout
    return left
