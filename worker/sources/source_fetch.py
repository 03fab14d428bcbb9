"""Fetch of one source document over HTTP, on its own site, spooled before it is read.

Spooled, because pages are read at the speed of the store, and a server may cut the answer of a slow
client: a reader gets a whole body or an error.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from shared.errors import OutboundError, SourceError, UnusableSourceError
from worker.http.exchange import SOURCE, OutboundRequest, configured
from worker.sources.source_streams import Document

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.http.client import HttpClient, OpenAnswer
    from worker.http.targets import SecretField


class Asked(NamedTuple):
    """The method, further headers and body of a request."""

    method: str = "GET"
    headers: Mapping[str, str] = {}
    body: bytes = b""


class ServerAnswerError(SourceError):
    """An answer that is no document: its status and headers."""

    def __init__(self, detail: str, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers


def client(
    url: str, auth: tuple[str, str] | None = None, secret: SecretField | None = None
) -> HttpClient:
    """Return a client for the documents of one source, whose address is `url` (RELIABILITY T22).

    `auth`: user name and password; `secret`: a header instead. Raises SourceError if `url` is none.
    """
    # Late, since every command loads this module and few ever fetch a source.
    from worker.http.client import HttpClient
    from worker.http.targets import BasicCredentials

    try:
        allowed = configured(url)
    except ValueError as error:
        raise SourceError(f"cannot fetch the source: {error}") from None
    credentials = secret if auth is None else BasicCredentials(url, *auth)
    return HttpClient(allowed, SOURCE, "sitemapd-import", keep=True, credentials=credentials)


def public_name(url: str) -> str:
    """Return the URL for reports and logs: without user name, password and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))


def same_site(one: str, other: str) -> bool:
    """Return True if both URLs are http(s) on one host and port (PROTOCOL N2).

    A leading `www.` makes no difference, nor do http and https on their default ports.
    """
    return _site(one) == _site(other) is not None


def _site(url: str) -> tuple[str, int] | None:
    parts = urlsplit(url)
    own = {"http": 80, "https": 443}.get(parts.scheme)
    if own is None or not parts.hostname:
        return None
    return parts.hostname.removeprefix("www."), 0 if parts.port in {None, own} else parts.port or 0


def name_without_query(url: str) -> str:
    """Return the URL for reports and logs where its query holds a key (RELIABILITY T30)."""
    return public_name(url).partition("?")[0]


def fetch(
    http: HttpClient,
    url: str,
    within: str | None = None,
    name: Callable[[str], str] = public_name,
    asked: Asked = Asked(),  # noqa: B008  a constant
) -> Document:
    """Ask for one document, following redirects on its own site.

    With `within` the document must be on the site of that URL (PROTOCOL N2), so neither an index
    nor a redirect can send the reader to other machines (RELIABILITY T22). `name` returns the form
    of a URL for reports. Raises SourceError for anything but a complete 200, a ServerAnswerError
    for another status; UnusableSourceError for another site.
    """
    try:
        shown = name(url)
        _check(url, within, name)
        request = OutboundRequest(asked.method, url, shown, asked.headers, asked.body)
        with http.open(request, lambda hop: _check_hop(hop, url, name)) as answer:
            shown = name(answer.url)
            return Document(shown, _spool(answer, shown), answer.url, answer.headers)
    except ValueError as error:  # a bracket in the host, for example
        raise SourceError(f"cannot fetch an unreadable address: {error}") from None
    except (OutboundError, OSError) as error:
        raise SourceError(f"cannot fetch {shown}: {error}") from error


def _check(url: str, within: str | None, name: Callable[[str], str]) -> None:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SourceError(f"cannot fetch {name(url)}: not an http or https URL")
    if within is not None and not same_site(url, within):
        detail = (
            f"{name(url)} is on another site than its index {public_name(within)}; "
            "import it by its own address if it is yours"
        )
        raise UnusableSourceError("N2", detail)


def _check_hop(url: str, start: str, name: Callable[[str], str]) -> None:
    if same_site(url, start):
        return
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SourceError(
            f"cannot fetch {name(start)}: it redirects to what is no http or https URL"
        )
    raise UnusableSourceError(
        "N2",
        f"{name(start)} redirects to another site, {name(url)}: nothing was asked there; import it "
        "by its own address if it is yours",
    )


def _spool(answer: OpenAnswer, name: str) -> IO[bytes]:
    """Return the body as it was sent: SourceBody decompresses it, within its bounds."""
    if answer.status != 200:
        detail = f"cannot fetch {name}: the server answered {answer.status}"
        raise ServerAnswerError(detail, answer.status, answer.headers)
    if answer.coding not in {"identity", "gzip", "x-gzip"}:
        raise SourceError(
            f"cannot fetch {name}: Content-Encoding {answer.coding} though none was asked"
        )
    file = tempfile.SpooledTemporaryFile(max_size=1024 * 1024)  # noqa: SIM115  Document closes it
    try:
        for chunk in answer.sent():
            file.write(chunk)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file
