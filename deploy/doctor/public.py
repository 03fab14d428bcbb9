"""Checks from outside: the public address serves what is in the web root."""

from __future__ import annotations

import gzip
import time
from contextlib import closing
from typing import NamedTuple

import httpx

from deploy.doctor.root import index_names, listed, opened
from deploy.doctor.runner import Case, DoctorCheck, DoctorFinding, fail, ok, skip, warn
from shared.sitemap import shards
from worker.publishing.web_root import WebRoot

STEP_S = 5.0
TOTAL_S = 15.0
MOST = shards.MAX_BYTES
_TRIES = 3
_AGAIN_S = 0.2
_OK = 200
_XML = ("application/xml", "text/xml")
_GZIP = ("application/gzip", "application/x-gzip")
_TEXT = ("text/plain",)

_SERVED = "configure the web server to serve the web root at base_url"
_SERVE = "configure the web server to serve {root} at {base} (deploy/nginx/sitemapd-files.conf)"


class PublicFile(NamedTuple):
    """A response: status, media type without parameters, the decoded body."""

    status: int
    kind: str
    body: bytes


def fetch(url: str) -> PublicFile:
    """GET `url` without proxy and redirects, at most MOST bytes within TOTAL_S seconds. Raises
    httpx.HTTPError if no complete response arrives.
    """
    deadline, body = time.monotonic() + TOTAL_S, bytearray()
    headers = {"User-Agent": "sitemapd-doctor", "Accept-Encoding": "gzip"}
    with (
        httpx.Client(timeout=STEP_S, trust_env=False, follow_redirects=False) as client,
        client.stream("GET", url, headers=headers) as reply,
    ):
        for piece in reply.iter_bytes():
            body += piece
            if len(body) > MOST or time.monotonic() > deadline:
                raise httpx.ReadTimeout(f"no end after {len(body)} bytes")
        kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
        return PublicFile(reply.status_code, kind, bytes(body))


def _public(
    case: Case, root: WebRoot, name: str, url: str, kinds: tuple[str, ...]
) -> DoctorFinding:
    """Check that `url` serves the file `name`; retried, since a publish may replace it."""
    todo = _SERVE.format(root=case.site.web_root, base=case.site.base_url)
    for last in (number == _TRIES - 1 for number in range(_TRIES)):
        content = _content(root, name, url)
        if content is None:
            return skip(f"{name} does not exist")
        try:
            served = fetch(url)
        except httpx.HTTPError as error:
            return fail(f"{url}: {type(error).__name__}: {error}", todo)
        if served.status != _OK:
            return fail(f"{url} returns status {served.status}", todo)
        if served.body == content:
            if served.kind not in kinds:
                detail = f"{url} has the Content-Type {served.kind or 'none'}"
                return warn(detail, f"configure the web server to send {kinds[0]}")
            return ok(f"{url}: {len(content)} bytes, identical to the file")
        if not last:
            time.sleep(_AGAIN_S)
    return fail(f"{url} differs from {root.path / name}", f"{todo}, without a cache in between")


def _content(root: WebRoot, name: str, url: str) -> bytes | None:
    """Return the decoded content of `url` on disk: `name` may be its compressed form."""
    content = root.read(name)
    encoded = name.endswith(".gz") and not url.endswith(".gz")
    return gzip.decompress(content) if encoded and content is not None else content


def _sitemap(case: Case) -> DoctorFinding:
    with closing(opened(case)) as root:
        names = index_names(case, root) if case.site.index else []
        if not names:
            return skip("no index was published yet")
        return _public(case, root, names[0], case.site.base.url(names[0]), _XML)


def _file(case: Case) -> DoctorFinding:
    site = case.site
    kinds = {"xml.gz": _GZIP, "txt": _TEXT}.get(site.form, _XML)
    with closing(opened(case)) as root:
        names = index_names(case, root) if site.index else []
        url = next((url for name in names for url in listed(root, name)), None)
        if url is None:
            return skip("no index lists a file yet")
        name = shards.on_disk(url.removeprefix(site.base.prefix), site.form)
        return _public(case, root, name, url, kinds)


def _robots(case: Case) -> DoctorFinding:
    base = case.site.base
    if base.path != "/":
        line = f"Sitemap: {base.url(shards.index_name(0))}"
        return skip(f"crawlers read {base.origin}/robots.txt: add the line {line} there")
    with closing(opened(case)) as root:
        return _public(case, root, "robots.txt", base.url("robots.txt"), _TEXT)


def _webhook(case: Case) -> DoctorFinding:
    url = f"{(case.to or case.site.base.origin).rstrip('/')}/readyz?accepting"
    todo = "start it (sitemapd up, or sitemapd run web), or set its address with --to"
    try:
        served = fetch(url)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return fail(f"{url}: {type(error).__name__}: {error}", todo)
    if served.status != _OK:
        return fail(f"{url} returns status {served.status}", todo)
    return ok(f"{url} returns status 200")


CHECKS = (
    *(
        DoctorCheck(f"public {name}", looks_at, look, _SERVED, online=True, needs="web root")
        for name, looks_at, look in (
            ("sitemap", "the index at its public address", _sitemap),
            ("file", "the first file that the index names", _file),
            ("robots.txt", "robots.txt at its address", _robots),
        )
    ),
    DoctorCheck(
        "webhook", "whether events can be sent", _webhook, "set its address with --to",
        online=True, needs="parts",
    ),
)  # fmt: skip
