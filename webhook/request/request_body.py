"""Read the body of a request: media type, length, bytes; without a framework."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Protocol

from webhook.problems import RefusedError

JSON = frozenset({"application/json"})
NDJSON = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl"})

CLOUD_HEADER = "ce-specversion"
"""Header of every CloudEvent that is sent in headers (CloudEvents HTTP binding, 3.1)."""

_SPACE = " \t"  # the only whitespace around a value (RFC 9110, 5.6.3); str.strip takes U+001F, too
_LENGTH = re.compile(r"[0-9]{1,18}")
_CHARSET = re.compile(r'charset *= *"?([^"]*)"?', re.IGNORECASE)


class BodyStream(Protocol):
    """The stream a body is read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...


def media_type(headers: Mapping[str, str], accepted: Collection[str]) -> str:
    """Return the announced media type, one of `accepted`. Raises RefusedError for others and for
    compression.

    `headers` have their names in lower case. Compressed bodies are refused unread: a bomb of 204 KB
    holds 200 MiB (RELIABILITY T7). A CloudEvent in headers is JSON unless it says otherwise, as its
    data would be in the JSON format; the Python SDK sends no content type then.
    """
    said = headers.get("content-type") or ("application/json" if CLOUD_HEADER in headers else "")
    kind, *parameters = (part.strip(_SPACE) for part in said.split(";"))
    kind = kind.lower()
    if kind not in accepted:
        known = ", ".join(sorted(accepted))
        raise RefusedError("media-type", f"send one of {known}", headers={"Accept": known})
    for parameter in parameters:
        charset = _CHARSET.fullmatch(parameter)
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
