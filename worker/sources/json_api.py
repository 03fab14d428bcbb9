"""JSON client for the API of a CMS, within the bounds of every fetched document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

from shared.errors import SourceError
from worker.sources.source_fetch import client, fetch, name_without_query
from worker.sources.source_streams import SourceBody


class JsonAnswer(NamedTuple):
    """One answer: the value and the headers."""

    value: Any
    headers: Mapping[str, str]


class JsonApi(AbstractContextManager["JsonApi"]):
    """Client of one server, which may redirect within its own site only (RELIABILITY T22).

    `auth`: user name and password. No error names a query, which may contain a key. Raises
    SourceError if `url` is not an http or https URL.
    """

    def __init__(self, url: str, auth: tuple[str, str] | None = None) -> None:
        try:
            sound = urlsplit(url).scheme in {"http", "https"} and bool(urlsplit(url).hostname)
        except ValueError:
            sound = False
        if not sound:
            raise SourceError("the source is not an http or https URL")
        self._url = url
        self._http = client(url, auth)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, url: str, **parameters: str | int) -> JsonAnswer:
        """Return the JSON at `url`. Raises SourceError for anything but complete JSON."""
        asked = f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}" if parameters else url
        name = name_without_query(url)
        with fetch(self._http, asked, within=self._url, name=name_without_query) as document:
            body = SourceBody(document.file)
            data = b"".join(body)
            if body.fault:
                raise SourceError(f"{name}: {body.fault[1]}")
            try:
                return JsonAnswer(json.loads(data), document.headers)
            except (ValueError, RecursionError):
                # The content is not logged: an error page may hold anything.
                raise SourceError(f"{name} answers no JSON, or not all of it") from None


def text(value: object) -> str:
    """Return `value` if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""
