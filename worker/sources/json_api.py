"""JSON client for the API of a CMS, within the bounds of every fetched document."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

from shared.errors import SourceError
from worker.http.exchange import retry_after
from worker.http.targets import SecretField
from worker.sources.source_fetch import (
    Asked,
    ServerAnswerError,
    client,
    fetch,
    name_without_query,
)
from worker.sources.source_streams import SourceBody

TRIES = 6
"""Times that a request is sent if the server says that it was one too many."""

LONGEST_PAUSE_S = 120.0
"""Most seconds that a server may have us wait for one request: a reconcile comes again later."""

_AT_A_LIMIT = frozenset({429, 503})
_RESETS = ("x-contentful-ratelimit-reset", "x-ratelimit-reset")
_NO_ENTRY = frozenset({401, 403})


class JsonAnswer(NamedTuple):
    """One answer: the value and the headers."""

    value: Any
    headers: Mapping[str, str]


class JsonApi(AbstractContextManager["JsonApi"]):
    """Client of one server, which may redirect within its own site only (RELIABILITY T22).

    `auth`: user name and password; `secret`: a header, name and value. Neither is sent to another
    server, or over plain HTTP where `url` is HTTPS. `wait` sleeps where the server says that it is
    asked too often. No error names a query, which may contain a key. Raises SourceError if `url` is
    not an http or https URL.
    """

    def __init__(
        self,
        url: str,
        auth: tuple[str, str] | None = None,
        *,
        secret: tuple[str, str] | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            sound = urlsplit(url).scheme in {"http", "https"} and bool(urlsplit(url).hostname)
        except ValueError:
            sound = False
        if not sound:
            raise SourceError("the source is not an http or https URL")
        self._url, self._wait = url, wait
        self._http = client(url, auth, secret and SecretField(url, *secret))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, url: str, **parameters: str | int) -> JsonAnswer:
        """Return the JSON at `url`. Raises SourceError for anything but complete JSON."""
        asked = f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}" if parameters else url
        return self._answer(asked, Asked())

    def post(self, url: str, value: object) -> JsonAnswer:
        """Return the JSON that answers a JSON value, as `get` does."""
        headers = {"Content-Type": "application/json"}
        return self._answer(url, Asked("POST", headers, json.dumps(value).encode()))

    def _answer(self, url: str, asked: Asked) -> JsonAnswer:
        for _ in range(TRIES - 1):
            try:
                return self._once(url, asked)
            except ServerAnswerError as error:
                self._wait(_pause_s(error))
        return self._once(url, asked)

    def _once(self, url: str, asked: Asked) -> JsonAnswer:
        name = name_without_query(url)
        with fetch(self._http, url, self._url, name_without_query, asked) as document:
            body = SourceBody(document.file)
            data = b"".join(body)
            if body.fault:
                raise SourceError(f"{name}: {body.fault[1]}")
            try:
                return JsonAnswer(_parsed(data), document.headers)
            except (ValueError, RecursionError):
                # The content is not logged: an error page may hold anything.
                raise SourceError(f"{name} answers no JSON, or not all of it") from None


def _parsed(data: bytes) -> Any:
    """Return JSON; half of a surrogate pair, which is no text, becomes U+FFFD. Raises ValueError
    and RecursionError.
    """
    value = json.loads(data)
    if b"\\ud" not in data.lower():
        return value
    spelt = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    return json.loads(spelt.decode("utf-16-le", "replace"))


def _pause_s(error: ServerAnswerError) -> float:
    """Return the seconds to wait before asking again. Raises the error if that is of no use."""
    if error.status in _NO_ENTRY:
        hint = f"{error}: is source_key right, and may it read this?"
        raise ServerAnswerError(hint, error.status, error.headers) from None
    seconds = retry_after(error.headers)
    if error.status == 429 and seconds is None:
        given = next((error.headers[name] for name in _RESETS if name in error.headers), "")
        # Where it is a time of day, not a number of seconds, it is longer than any pause.
        seconds = float(given) if given.isascii() and given.isdigit() and len(given) < 5 else 1.0
    if error.status not in _AT_A_LIMIT or seconds is None:
        raise error
    if seconds > LONGEST_PAUSE_S:
        raise SourceError(f"{error}: asked too often; it says to come back in {seconds:.0f} s")
    return max(seconds, 0.1)


def text(value: object) -> str:
    """Return `value` if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""
