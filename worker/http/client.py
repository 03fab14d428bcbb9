"""HTTP client for every request that goes out: allowed hosts, checked addresses, bounded answers.

RELIABILITY T22. No proxy and no other setting of the environment is used, and no cookie is kept. A
redirect is an answer, unless the bounds allow it: then it is followed to allowed hosts only, after
`hop` has seen its address.

It stands on httpcore. httpx 0.28 would only be a layer above it: it takes no network backend that
could hold a checked address, decompresses without a limit, and takes 0.13 s more to import.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache
from urllib.parse import SplitResult, urljoin, urlsplit

import httpcore

from shared.errors import BarredError, OutboundError
from worker.http.exchange import (
    NOTIFY,
    AllowedHosts,
    Bounds,
    OutboundAnswer,
    OutboundRequest,
    excerpt,
)
from worker.http.network import GuardedNetwork, Resolve, TimeLimit, resolve
from worker.http.targets import BasicCredentials, SecretField, credential, host_field, target

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEPT_S = 5.0
_GZIP = 31
_FAULTS = (
    httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError, ValueError,
    zlib.error,
)  # fmt: skip


class HttpClient(AbstractContextManager["HttpClient"]):
    """Client of one caller, for one request at a time.

    `agent` is its User-Agent. With `keep` connections are used again. `go_on` is called repeatedly,
    and aborts a request by raising.
    """

    def __init__(
        self,
        allowed: AllowedHosts,
        bounds: Bounds,
        agent: str,
        *,
        keep: bool = False,
        credentials: BasicCredentials | SecretField | None = None,
        go_on: Callable[[], None] = lambda: None,
        resolve: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._allowed, self._bounds, self._credentials = allowed, bounds, credentials
        self._resolve, self._tls, self._limit = resolve, tls, TimeLimit(bounds, go_on)
        self._pools: dict[str, httpcore.ConnectionPool] = {}
        self._headers = {"User-Agent": agent, "Accept": "*/*", "Accept-Encoding": "identity"}
        if not keep:
            self._headers["Connection"] = "close"

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that were kept."""
        for pool in self._pools.values():
            pool.close()

    @contextmanager
    def open(
        self, request: OutboundRequest, hop: Callable[[str], None] = lambda _: None
    ) -> Iterator[OpenAnswer]:
        """Yield the answer to `request`; `hop` gets the address of each redirect before it is
        asked.

        Raises BarredError if a request may not be sent, OutboundError without an answer.
        """
        self._limit.begin()
        url = request.url
        for _ in range(self._bounds.redirects + 1):
            with ExitStack() as stack:
                parts = self._checked(url)
                faults = _Faults(parts.hostname or "", self._limit)
                with faults.translated():
                    reply = stack.enter_context(self._reply(request, parts))
                headers = _joined(reply.headers)
                if not self._bounds.redirects or reply.status not in _REDIRECTS:
                    yield OpenAnswer(url, reply, headers, self._bounds.size, faults)
                    return
                with faults.translated():
                    url = urljoin(url, headers.get("location", ""))
            hop(url)
        raise OutboundError(f"more than {self._bounds.redirects} redirects")

    def _checked(self, url: str) -> SplitResult:
        """Return the parts of `url`. Raises BarredError if nothing may be sent to it."""
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:  # a bracket in the host, or a port that is no number
            raise BarredError("the address is no URL") from None
        allowed, host = self._allowed, parts.hostname
        if parts.scheme not in {"http", "https"} or not host:
            raise BarredError("the address is not an http or https URL")
        if host not in allowed.hosts:
            raise BarredError(f"{host} is none of the hosts that may be asked")
        if parts.scheme == "http" and not any(allowed[1:]):
            raise BarredError(f"{host} may only be asked over https")
        return parts

    def _reply(
        self, request: OutboundRequest, parts: SplitResult
    ) -> AbstractContextManager[httpcore.Response]:
        url = target(parts)
        headers = {"Host": host_field(url), **self._headers, **request.headers}
        if proof := credential(parts, self._credentials):
            headers.setdefault(*proof)
        return self._pool(parts.scheme).stream(
            request.method, url, headers=[*headers.items()], content=request.body or None
        )

    def _pool(self, scheme: str) -> httpcore.ConnectionPool:
        if scheme not in self._pools:
            plain = scheme == "http"
            self._pools[scheme] = httpcore.ConnectionPool(
                ssl_context=None if plain else self._tls or trusted(),
                network_backend=GuardedNetwork(
                    self._allowed, self._limit, self._resolve, plain=plain
                ),
                keepalive_expiry=_KEPT_S, retries=0, http1=True, http2=False,
            )  # fmt: skip
        return self._pools[scheme]


class OpenAnswer:
    """An answer from `url` whose body was not read yet; header names are in lower case."""

    def __init__(
        self,
        url: str,
        reply: httpcore.Response,
        headers: dict[str, str],
        size: int,
        faults: _Faults,
    ) -> None:
        self.url, self.status, self.headers = url, reply.status, headers
        self.coding = headers.get("content-encoding", "identity").strip().lower()
        self._reply, self._size, self._faults = reply, size, faults

    def sent(self) -> Iterator[bytes]:
        """Yield the body as it was sent. Raises OutboundError, also if it is longer than the
        bounds.
        """
        size = 0
        with self._faults.translated():
            for chunk in self._reply.iter_stream():
                size += len(chunk)
                if size > self._size:
                    raise _too_long(self._size)
                yield chunk

    def body(self, most: int | None = None, *, cut: bool = False) -> bytes:
        """Return the body, decoded if it is gzip. Raises OutboundError.

        More than `most` bytes, or than the bounds, are an error; with `cut`, one byte more is
        returned and the rest is not read.
        """
        most = self._size if most is None else min(most, self._size)
        body, inflate = bytearray(), None
        if self.coding in {"gzip", "x-gzip"}:
            inflate = zlib.decompressobj(_GZIP)
        with self._faults.translated():
            for chunk in self._reply.iter_stream():
                left = most + 1 - len(body)
                body += chunk[:left] if inflate is None else inflate.decompress(chunk, left)
                if len(body) > most:
                    break
        if len(body) > most and not cut:
            raise _too_long(most)
        return bytes(body)


class _Faults:
    """Errors of an exchange with `host`, as errors of sitemapd."""

    def __init__(self, host: str, limit: TimeLimit) -> None:
        self._host, self._limit = host, limit

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except _FAULTS as error:
            raise OutboundError(f"no answer from {self._host}: {self._reason(error)}") from None

    def _reason(self, error: Exception) -> str:
        if isinstance(error, (httpcore.TimeoutException, TimeoutError)):
            return self._limit.exceeded()
        if isinstance(error, (httpcore.LocalProtocolError, ValueError)):
            # A header that cannot be sent may hold a secret, and the message quotes it (RELIABILITY
            # T30).
            return "the request is none that HTTP can carry; is there a line break in a secret?"
        return excerpt(str(error)) or type(error).__name__


def ask(
    request: OutboundRequest,
    allowed: AllowedHosts,
    *,
    bounds: Bounds = NOTIFY,
    resolve: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
) -> OutboundAnswer:
    """Send one request to a search engine or hub, on a connection of its own.

    Raises BarredError if it may not be sent, OutboundError without an answer.
    """
    client = HttpClient(allowed, bounds, "sitemapd-notify", resolve=resolve, tls=tls)
    with client, client.open(request) as answer:
        body = answer.body(cut=request.partly)[: bounds.size]
        return OutboundAnswer(answer.status, answer.headers, body)


@lru_cache
def trusted() -> ssl.SSLContext:
    """Return the system's certificate authorities, or those of certifi where it has none.

    Reading them takes 20 ms.
    """
    paths = ssl.get_default_verify_paths()
    own = paths.cafile or paths.capath
    return ssl.create_default_context() if own else httpcore.default_ssl_context()


def _too_long(most: int) -> OutboundError:
    return OutboundError(f"an answer of more than {most} bytes")


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by name; repeated ones mean the same as one list (RFC 9110, 5.3)."""
    found: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found
