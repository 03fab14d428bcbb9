"""Address of a request as it is sent: punycode and escapes, the Host field, the credentials."""

from __future__ import annotations

import base64
import re
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

import httpcore
import idna

_AUTHORIZATION = "Authorization"
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SENT = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"#<>`{}')
"""Characters of a path or query that are sent as they are; others are escaped."""


class BasicCredentials(NamedTuple):
    """User name and password for the host of `url`."""

    url: str
    user: str
    password: str


class SecretField(NamedTuple):
    """A header that proves who asks, for the server of `url`: its name and value."""

    url: str
    name: str
    value: str


def target(parts: SplitResult) -> httpcore.URL:
    """Return an address in the form in which it is sent. Raises ValueError for an invalid host."""
    host = parts.hostname or ""
    if not host.isascii():
        host = idna.encode(host, uts46=True).decode()
    path, query = (
        quote(_BROKEN_ESCAPE.sub("%25", text), safe=_SENT) for text in (parts.path, parts.query)
    )
    line = f"{path or '/'}?{query}" if query else path or "/"
    return httpcore.URL(
        scheme=parts.scheme.encode(), host=host.encode(), port=parts.port, target=line.encode()
    )


def host_field(url: httpcore.URL) -> str:
    """Return the Host field of a request to `url`."""
    host = url.host.decode()
    host = f"[{host}]" if ":" in host else host
    return host if url.port is None else f"{host}:{url.port}"


def credential(
    parts: SplitResult, given: BasicCredentials | SecretField | None
) -> tuple[str, str] | None:
    """Return the header that proves who asks at an address; None if nothing may be sent there.

    Credentials in the address itself come first. `given` ones go to the server of their own
    address, a leading `www.` apart, and never over plain HTTP if that is HTTPS.
    """
    if parts.username is not None:
        return _AUTHORIZATION, _basic(unquote(parts.username), unquote(parts.password or ""))
    if given is None:
        return None
    own = urlsplit(given.url)
    if (own.scheme, parts.scheme) == ("https", "http") or _server(own) != _server(parts):
        return None
    if isinstance(given, SecretField):
        return given.name, given.value
    return _AUTHORIZATION, _basic(given.user, given.password)


def _server(parts: SplitResult) -> tuple[str, int | None]:
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    port = None if parts.port == usual else parts.port
    return (parts.hostname or "").removeprefix("www."), port


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
