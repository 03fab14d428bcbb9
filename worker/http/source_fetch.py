"""Fetch of one source document over HTTP: bounded in time, size and redirects, spooled before
reading.

Spooled, because pages are read at the speed of the store, and a server may cut the answer of a slow
client: a reader gets a whole body or an error.
"""

from __future__ import annotations

import tempfile
import time
from typing import IO, TYPE_CHECKING
from urllib.parse import urljoin, urlsplit, urlunsplit

from shared.errors import SourceError, UnusableSourceError
from worker.http.document import CHUNK, EXPANSION_LIMIT, Document

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

STEP_TIMEOUT = 10.0  # seconds to connect, and between two reads
TOTAL_TIMEOUT = 120.0  # seconds for one document: 60 MiB at 4 Mbit/s
MAX_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def client() -> httpx.Client:
    """Return an HTTP client that reads no proxy settings (RELIABILITY T22) and follows no
    redirects.
    """
    import httpx  # late, since every worker loads this module and few ever fetch a source

    # identity: SourceBody decompresses within its bounds, never the HTTP library.
    headers = {"Accept-Encoding": "identity", "User-Agent": "sitemapd-import"}
    return httpx.Client(
        timeout=STEP_TIMEOUT, trust_env=False, follow_redirects=False, headers=headers
    )


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
    http: httpx.Client,
    url: str,
    within: str | None = None,
    name: Callable[[str], str] = public_name,
) -> Document:
    """GET one document, following at most MAX_REDIRECTS redirects on its own site.

    With `within` the document must be on the site of that URL (PROTOCOL N2), so neither an index
    nor a redirect can send the reader to other machines (RELIABILITY T22). `name` returns the form
    of a URL for reports. Raises SourceError for anything but a complete 200; UnusableSourceError
    for another site.
    """
    import httpx

    deadline = time.monotonic() + TOTAL_TIMEOUT
    start = url
    try:
        _check(url, within, name)
        for _ in range(MAX_REDIRECTS + 1):
            _check_hop(url, start, name)
            with http.stream("GET", url) as answer:
                if answer.status_code not in _REDIRECTS:
                    shown = name(url)
                    return Document(shown, _spool(answer, deadline, shown), url, answer.headers)
                url = urljoin(url, answer.headers.get("location", ""))
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise SourceError(f"cannot fetch {_safe_name(url, name)}: {reason}") from error
    raise SourceError(f"cannot fetch {name(url)}: more than {MAX_REDIRECTS} redirects")


def _safe_name(url: str, name: Callable[[str], str]) -> str:
    try:
        return name(url)
    except ValueError:
        return "an unreadable address"


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


def _spool(answer: httpx.Response, deadline: float, name: str) -> IO[bytes]:
    if answer.status_code != 200:
        raise SourceError(f"cannot fetch {name}: the server answered {answer.status_code}")
    coding = answer.headers.get("content-encoding", "identity").lower()
    if coding not in {"identity", "gzip", "x-gzip"}:
        raise SourceError(f"cannot fetch {name}: Content-Encoding {coding} though none was asked")
    file = tempfile.SpooledTemporaryFile(max_size=1024 * 1024)  # noqa: SIM115  Document closes it
    try:
        _copy(answer, file.write, name, deadline)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


def _copy(
    answer: httpx.Response, write: Callable[[bytes], int], name: str, deadline: float
) -> None:
    size = 0
    for chunk in answer.iter_raw(CHUNK):
        size += len(chunk)
        if size > EXPANSION_LIMIT:
            raise SourceError(f"cannot fetch {name}: larger than {EXPANSION_LIMIT} bytes")
        if time.monotonic() > deadline:
            raise SourceError(f"cannot fetch {name}: not complete after {TOTAL_TIMEOUT:.0f} s")
        write(chunk)
