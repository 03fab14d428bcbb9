"""Published files of the sites over HTTP, for a machine without a web server of its own.

A file is opened once and sent from that descriptor, so a reader gets the old or the new one, never
a mixture. Symbolic links, dot-files and everything outside the web root are not served (RELIABILITY
T19, T20).
"""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import unquote_to_bytes

from werkzeug.http import http_date
from werkzeug.wrappers import Request, Response
from werkzeug.wsgi import wrap_file

from shared.config.filenames import index_name
from shared.config.sites.site import Site
from shared.sitemap import feed_writer, shards

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

TYPES = {
    ".xml": "application/xml",
    ".gz": "application/gzip",
    ".txt": "text/plain; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
}
FEED_TYPES = {feed_writer.ATOM: "application/atom+xml", feed_writer.RSS: "application/rss+xml"}
OTHER_TYPE = "application/octet-stream"

_CHUNK = 65536
_WELL_KNOWN = shards.WELL_KNOWN.encode()
_CACHE = "max-age=0, must-revalidate"
_UNFRAMED = "frame-ancestors 'none'"
"""Only a header can state this; `sitemap.html` states the rest of its policy itself (T28)."""


class StaticFiles:
    """The web roots of some sites, as a WSGI application.

    Serves the site whose base_url has the host and port of the Host header; among several the one
    whose directory contains the path; for an unknown host the first.
    """

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self._sites = dict(sites)

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        return self._respond(request)(environ, start)

    def _respond(self, request: Request) -> Response:
        if request.method not in {"GET", "HEAD"}:
            return _text(405, "Only GET and HEAD.", {"Allow": "GET, HEAD"})
        owner = self.site_of(request.environ)
        if owner is None:
            return _text(404, "There is no such file.")
        site = self._sites[owner]
        name = _path(request.environ).removeprefix(_directory(site))
        if not name:
            url = site.base.url(index_name(site, 0))
            return _text(200, f"The sitemap is {url} (from the first event on)")
        if site.outputs.change_list and site.base.path == "/" and name == _WELL_KNOWN:
            name = shards.CHANGE_LIST_FILES[-1].encode()
        return _send(request, site.web_root, name)

    def site_of(self, environ: WSGIEnvironment) -> str | None:
        """Return the name of the site whose files a request is for; None if there is none."""
        host, path = environ.get("HTTP_HOST", "").lower(), _path(environ)
        same = [name for name, site in self._sites.items() if _authority(site) == host]
        inside = [
            name for name in same or list(self._sites)[:1]
            if path.startswith(_directory(self._sites[name]))
        ]  # fmt: skip
        return max(inside, key=lambda name: len(self._sites[name].base.path), default=None)


def _path(environ: WSGIEnvironment) -> bytes:
    # PEP 3333: PATH_INFO is the unescaped path, one character per byte
    path: str = environ.get("PATH_INFO", "")
    return path.encode("latin-1", "replace")


def _authority(site: Site) -> str:
    return site.base.origin.partition("://")[2]


def _directory(site: Site) -> bytes:
    return unquote_to_bytes(site.base.path)


def _send(request: Request, root: Path, name: bytes) -> Response:
    path = Path(os.fsdecode(name))
    kind = FEED_TYPES.get(str(path)) or TYPES.get(path.suffix, OTHER_TYPE)
    file = open_below(root, name)
    if file is not None:
        return _answer(request, file, kind)
    packed = open_below(root, name + b".gz") if name.endswith(b".xml") else None
    if packed is None:
        return _text(404, "There is no such file.")
    return _answer(request, packed, kind, packed=True)


def _answer(request: Request, file: IO[bytes], kind: str, *, packed: bool = False) -> Response:
    found = os.fstat(file.fileno())
    unpack = packed and request.accept_encodings.quality("gzip") <= 0
    response = Response(content_type=kind)
    headers = response.headers
    headers["Cache-Control"] = _CACHE
    headers["Last-Modified"] = http_date(found.st_mtime)
    headers["X-Content-Type-Options"] = "nosniff"
    if kind == TYPES[".html"]:
        headers["Content-Security-Policy"] = _UNFRAMED
    response.set_etag(f"{found.st_mtime_ns:x}-{found.st_size:x}{'-plain' if unpack else ''}")
    if packed:
        headers["Vary"] = "Accept-Encoding"
    if packed and not unpack:
        headers["Content-Encoding"] = "gzip"
    response.automatically_set_content_length = False
    response.make_conditional(request)
    if response.status_code == HTTPStatus.NOT_MODIFIED:
        file.close()
        return response
    if not unpack:
        headers["Content-Length"] = str(found.st_size)
    if request.method == "HEAD":
        file.close()
        return response
    body = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if unpack else file
    response.response = wrap_file(request.environ, body, _CHUNK)
    response.call_on_close(file.close)
    return response


def open_below(root: Path, name: bytes) -> IO[bytes] | None:
    """Open the regular file `name` in or below `root`; None if there is none, or it is not served.

    Each part of the name is opened separately and without following links, so that no name leads
    outside, even if a directory is replaced meanwhile.
    """
    *folders, last = name.split(b"/")
    if any(not part or part.startswith(b".") or b"\0" in part for part in (*folders, last)):
        return None
    with suppress(OSError):
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in folders:
                inner = os.open(
                    part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
                )
                os.close(folder)
                folder = inner
            # opening a FIFO would block the thread
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(last, flags, dir_fd=folder)
        finally:
            os.close(folder)
        if stat.S_ISREG(os.fstat(file).st_mode):
            return os.fdopen(file, "rb")
        os.close(file)
    return None


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(text + "\n", status, headers, content_type=TYPES[".txt"])
