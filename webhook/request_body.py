"""Read the body of a request: headers, media type, length, bytes, strict JSON; without a framework.

The JSON is stricter than the standard library where two parsers could read different values, or a
small body could cost much: no duplicate names, NaN, infinities, lone surrogates or huge numbers,
UTF-8 only, at most MAX_DEPTH deep, in time linear to the size (RELIABILITY T8, T9).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, NoReturn, Protocol

from webhook.problems import RefusedError

JSON = frozenset({"application/json"})
NDJSON = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl"})
NATIVE = JSON | NDJSON
"""Media types of events in our own form (DESIGN 6)."""

CLOUD_HEADER = "ce-specversion"
"""Header of every CloudEvent that is sent in headers (CloudEvents HTTP binding, 3.1)."""

MAX_ITEMS = 1_000
MAX_DEPTH = 20
FOREIGN_DEPTH = 100
"""Depth allowed for a CMS: rich texts nest two levels for each of their own."""
MAX_DIGITS = 20
"""Digits of an integer: any of 64 bits, as nanoseconds since 1970 and the ids of some CMSes are."""
MAX_DECIMAL = 64
"""Characters of a number with a fraction or exponent; a double needs 25."""

_SPACE = " \t"  # the only whitespace around a value (RFC 9110, 5.6.3); str.strip takes U+001F, too
_LENGTH = re.compile(r"[0-9]{1,18}")
_CHARSET = re.compile(r'charset *= *"?([^"]*)"?', re.IGNORECASE)
_NO_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^][{}"]++', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class BodyStream(Protocol):
    """The stream a body is read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...


def headers(environ: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a request by its WSGI environment, names in lower case."""
    found = {_header(name): value for name, value in environ.items() if name[:5] == "HTTP_"}
    for name, own in _OWN_NAMES:
        found.pop(name, None)
        if value := environ.get(own):
            found[name] = value
    return found


_OWN_NAMES = (("content-type", "CONTENT_TYPE"), ("content-length", "CONTENT_LENGTH"))
"""Headers that PEP 3333 gives names of their own."""


@lru_cache(256)
def _header(name: str) -> str:
    return name[5:].replace("_", "-").lower()


def media_type(headers: Mapping[str, str], accepted: Collection[str]) -> str:
    """Return the announced media type, one of `accepted`. Raises RefusedError for others and for
    compression.

    `headers` have their names in lower case. Compressed bodies are refused unread: a bomb of 204 KB
    holds 200 MiB (RELIABILITY T7). A CloudEvent in headers is JSON unless it says otherwise, as its
    data would be in the JSON format; the Python SDK sends no content type then.
    """
    unannounced = "application/json" if CLOUD_HEADER in headers else ""
    announced = headers.get("content-type") or unannounced
    kind, *parameters = announced.split(";")
    kind = kind.strip(_SPACE).lower()
    if kind not in accepted:
        known = ", ".join(sorted(accepted))
        raise RefusedError("media-type", f"send one of {known}", headers={"Accept": known})
    for parameter in parameters:
        charset = _CHARSET.fullmatch(parameter.strip(_SPACE))
        if charset and charset[1].strip(_SPACE).lower() not in {"utf-8", "utf8"}:
            raise RefusedError("media-type", "send UTF-8")
    if headers.get("content-encoding", "").strip(_SPACE).lower() not in {"", "identity"}:
        detail = "send the body as it is, without Content-Encoding"
        raise RefusedError("content-encoding", detail, headers={"Accept-Encoding": "identity"})
    return kind


def read(stream: BodyStream, headers: Mapping[str, str], limit: int) -> bytes:
    """Return the whole body, exactly as long as announced and at most `limit` bytes. Raises
    RefusedError otherwise.

    A Content-Length is required because servers differ in their handling of chunked bodies:
    Werkzeug returned only the first 64 KiB of one (RELIABILITY T6).
    """
    announced = headers.get("content-length", "")
    if "transfer-encoding" in headers or not _LENGTH.fullmatch(announced):
        raise RefusedError("length-required", "send Content-Length, and no chunks")
    length = int(announced)
    if length > limit:
        raise RefusedError("too-large", f"{length} bytes, at most {limit} are taken")
    chunks = []
    missing = length
    while missing > 0:
        try:
            chunk = stream.read(missing)
        except OSError as error:
            raise RefusedError("malformed", "the body broke off", reason="body-broken") from error
        if not chunk:
            raise RefusedError(
                "malformed", "the body is shorter than announced", reason="body-short"
            )
        chunks.append(chunk)
        missing -= len(chunk)
    return b"".join(chunks)


def digest(content: bytes) -> str:
    """Return the digest under which a body is remembered."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def items(body: bytes, kind: str) -> list[Any]:
    """Return the items of a body of the media type `kind`: one per line of NDJSON, else those of a
    JSON array, or the one object. Raises RefusedError.
    """
    return lines(body) if kind in NDJSON else batch(body)


def batch(body: bytes) -> list[Any]:
    """Return the items of a JSON array, or the one object. Raises RefusedError for other bodies."""
    text = _text(body)
    value = _parse(text, "", escapes=_SURROGATE.search(text) is not None)
    if isinstance(value, dict):
        return [value]
    if not isinstance(value, list):
        raise RefusedError("json", "send an object or an array of objects")
    return _counted(value)


def single(body: bytes) -> Any:
    """Return the value of a body that is one JSON value. Raises RefusedError."""
    text = _text(body)
    return _parse(text, "", escapes=_SURROGATE.search(text) is not None)


def foreign(body: bytes) -> Any:
    """Return the value of a body in the format of a CMS. Raises RefusedError if it is no strict
    JSON.

    Up to FOREIGN_DEPTH deep, and with half surrogate pairs: CMSes cut texts in the middle of them.
    The adapters check every value they keep again.
    """
    return _parse(_text(body), "", escapes=False, most=FOREIGN_DEPTH)


def lines(body: bytes) -> list[Any]:
    """Return the items of an NDJSON body, one per line that is not blank. Raises RefusedError."""
    text = _text(body)
    escapes = _SURROGATE.search(text) is not None
    # Not splitlines: that would break lines at U+2028 and other characters JSON allows.
    numbered = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip(" \t\r")]
    return [
        _parse(line, f"line {number}: ", escapes=escapes) for number, line in _counted(numbered)
    ]


def _counted(items: list[Any]) -> list[Any]:
    if len(items) > MAX_ITEMS:
        raise RefusedError("too-many", f"{len(items)} events, at most {MAX_ITEMS} are taken")
    if not items:
        raise RefusedError("json", "the body holds no event")
    return items


def _text(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError("json", f"not UTF-8 at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise RefusedError("json", "send UTF-8 without a byte order mark")
    return text


def _check_depth(text: str, where: str, most: int) -> None:
    """Raise RefusedError for deep nesting before the parser recurses into it.

    Each round removes the innermost brackets, so what is left after `most` rounds was nested deeper
    or has no partner. An array of 1,000 events takes 2.4 ms, a single event nothing.
    """
    if text.count("[") + text.count("{") <= most:
        return
    brackets = _NO_BRACKETS.sub("", text)
    for _ in range(most):
        brackets = brackets.replace("[]", "").replace("{}", "")
        if not brackets:
            return
    detail = f"{where}brackets or quotes do not match, or nest deeper than {most}"
    raise RefusedError("json", detail)


def _parse(text: str, where: str, *, escapes: bool, most: int = MAX_DEPTH) -> Any:
    _check_depth(text, where, most)
    try:
        value = _DECODER.decode(text)
        if escapes:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise RefusedError("json", f"{where}{error.msg} at character {error.pos}") from None
    except UnicodeEncodeError:
        raise RefusedError("json", f"{where}half of a surrogate pair") from None
    except (ValueError, RecursionError) as error:
        raise RefusedError("json", f"{where}{error}") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the name {name[:64]!a} occurs twice in one object")
            seen.add(name)
    return members


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS + digits.startswith("-"):
        raise ValueError(f"an integer of more than {MAX_DIGITS} digits")
    return int(digits)


def _decimal(text: str) -> float:
    number = float(text) if len(text) <= MAX_DECIMAL else math.inf
    if math.isinf(number):
        raise ValueError("a number out of range")
    return number


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_decimal, parse_constant=_constant
)
