"""Canonical URLs, the one form that is stored, and the site they must belong to (PROTOCOL L1-L7).

A URL is split, checked and rebuilt; only the rebuilt text is used (RELIABILITY T16: a check of
one parser's reading is worthless if other parsers read the text differently).
Any text gives a canonical URL or UrlError, nothing else, and a canonical URL is its own canonical
form. Escapes of unreserved characters stay escaped (`%7E` is not `~`), because crawlers fetch
URLs exactly as listed (PROTOCOL L7).
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self
from urllib.parse import quote

import idna

from shared.errors import UrlError

MAX_LENGTH = 2_047
"""Maximum characters of a URL: the protocol says less than 2,048 (PROTOCOL L2)."""

_ABSOLUTE = re.compile(r"([a-z]+)://([^/?#]*)([^?#]*)(\?[^#]*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(.+?)(?::([0-9]{0,5}))?")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_FOREIGN_DOT = re.compile(r"[\u3002\uff0e\uff61]")
_DOT_SEGMENT = re.compile(r"/(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
# Square brackets are escaped in the query too, where browsers leave them bare: RFC 3986 allows
# them in a host only, and servers decode the names of parameters.
_SAFE = "%!$&'()*+,;=:@/?"
_CANONICAL_REST = re.compile(
    r"[A-Za-z0-9\-._~!$&'()*+,;=:@/?]*+(?:%[0-9A-F]{2}[A-Za-z0-9\-._~!$&'()*+,;=:@/?]*+)*+"
)
_WEB = ("http", "https")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}
_MAX_HOST = 253


class _Parts(NamedTuple):
    origin: str
    path: str
    query: str  # with its question mark, or empty


@dataclass(frozen=True, slots=True)
class Base:
    """The address below which every page of a site lies.

    `origin` is the canonical `scheme://host[:port]`, `path` a directory that starts and ends
    with a slash. Build it with `parse`.
    """

    origin: str
    path: str
    prefix: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", self.origin + self.path)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a `base_url`; a missing final slash is added. Raises UrlError."""
        parts = _split(text)
        if parts.query or "#" in text:
            raise UrlError("L6", "a base URL is a directory: remove the query or fragment")
        base = cls(parts.origin, parts.path if parts.path.endswith("/") else parts.path + "/")
        if len(base.prefix) > MAX_LENGTH:
            raise _too_long(len(base.prefix))
        return base

    def url(self, name: str) -> str:
        """The address of the file `name` in the site's directory."""
        return self.prefix + name


def canonical(loc: str, base: Base) -> str:
    """The canonical form of `loc`: printable ASCII, at most 2,047 characters.

    Host in lower case and punycode, default port and fragment dropped, everything RFC 3986 does
    not allow escaped as UTF-8, escapes in upper case. Raises UrlError with the broken rule.
    """
    if is_canonical(loc, base):
        return loc
    parts = _split(loc)
    if parts.origin != base.origin:
        raise UrlError("L5", f"{parts.origin} is another site: all URLs here are of {base.origin}")
    if not parts.path.startswith(base.path):
        raise UrlError("L6", f"the path must start with {base.path}, the directory of the sitemap")
    url = f"{parts.origin}{parts.path}{parts.query}"
    if len(url) > MAX_LENGTH:
        raise _too_long(len(url))
    return url


def absolute(text: str, schemes: Sequence[str] = _WEB) -> str:
    """The canonical form of a URL on any host, for references of a page (PROTOCOL H6, I3, V8).

    Like `canonical`, for any site; `schemes` are some of http, https and ftp.
    Raises UrlError with the broken rule.
    """
    parts = _split(text, schemes)
    url = f"{parts.origin}{parts.path}{parts.query}"
    if len(url) > MAX_LENGTH:
        raise _too_long(len(url))
    return url


def is_canonical(loc: str, base: Base) -> bool:
    """True for the usual case, decided without splitting the URL; False decides nothing."""
    return (
        loc.startswith(base.prefix)
        and len(loc) <= MAX_LENGTH
        and "/." not in loc
        and "/%2E" not in loc
        and _CANONICAL_REST.fullmatch(loc, len(base.prefix)) is not None
    )


def _split(text: str, schemes: Sequence[str] = _WEB) -> _Parts:
    _check_characters(text)
    match = _ABSOLUTE.match(text)
    if match is None or match[1].lower() not in schemes:
        known = " or ".join(f"{scheme}://" for scheme in schemes)
        raise UrlError("L1", f"send an absolute URL that starts with {known}")
    scheme, authority, path, query = match[1].lower(), match[2], match[3] or "/", match[4] or ""
    origin = _origin(scheme, authority)
    if _BROKEN_ESCAPE.search(path) or _BROKEN_ESCAPE.search(query):
        raise UrlError("L3", "a % must begin an escape of two hex digits; write a bare one as %25")
    if _DOT_SEGMENT.search(path):
        raise UrlError("L3", "resolve the . and .. segments of the path")
    return _Parts(origin, _escaped(path), _escaped(query))


def _check_characters(text: str) -> None:
    if text != text.strip():
        raise UrlError("L3", "remove the space around the URL")
    match = _FORBIDDEN.search(text)
    if match is None:
        return
    if match[0] == "\\":
        raise UrlError("L3", "a backslash is no part of a URL: write / or, if meant, %5C")
    raise UrlError("L3", f"remove the character U+{ord(match[0]):04X}")


def _origin(scheme: str, authority: str) -> str:
    if "@" in authority:
        raise UrlError("L4", "remove the user name and password before the host")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise UrlError("L1", "the host is missing")
    host, port = _host(match[1]), int(match[2] or _DEFAULT_PORTS[scheme])
    if not 1 <= port <= 65_535:
        raise UrlError("L5", "ports run from 1 to 65535")
    return f"{scheme}://{host}" if port == _DEFAULT_PORTS[scheme] else f"{scheme}://{host}:{port}"


def _host(text: str) -> str:
    if text.startswith("["):
        return _literal(text)
    if _FOREIGN_DOT.search(text):
        raise UrlError("L3", "write the dots of the host as ASCII full stops")
    # idna takes time quadratic in the length, so the limit comes first
    if len(text) > _MAX_HOST:
        raise UrlError("L3", f"a host name has at most {_MAX_HOST} characters")
    host = ".".join(map(_label, unicodedata.normalize("NFC", text.lower()).split(".")))
    if len(host) > _MAX_HOST:
        raise UrlError("L3", f"a host name has at most {_MAX_HOST} characters in punycode")
    return host


def _literal(text: str) -> str:
    """An IPv6 address in the form of RFC 5952, in its brackets."""
    try:
        if text.isascii() and text.endswith("]") and "%" not in text:
            address = ipaddress.IPv6Address(text[1:-1])
            mapped = address.ipv4_mapped  # whose form differs between versions of Python
            return f"[::ffff:{mapped}]" if mapped else f"[{address.compressed}]"
    except ValueError:
        pass
    raise UrlError("L3", "in brackets there must be an IPv6 address without a zone")


def _label(label: str) -> str:
    if not label.isascii():
        try:
            return idna.alabel(label).decode("ascii")
        except UnicodeError as error:
            raise UrlError("L3", f"the host is no valid international name: {error}") from None
    if not _LABEL.fullmatch(label):
        detail = "the host may hold letters, digits, hyphens and single dots between them only"
        raise UrlError("L3", detail)
    return label


def _escaped(text: str) -> str:
    quoted = quote(text, safe=_SAFE)
    return _ESCAPE.sub(lambda match: match[0].upper(), quoted) if "%" in quoted else quoted


def _too_long(length: int) -> UrlError:
    return UrlError("L2", f"{length} characters, at most {MAX_LENGTH} are allowed")
