"""Checks from outside: the public address serves what is in the web root."""

from __future__ import annotations

from contextlib import closing

from deploy.doctor.root import index_names, listed, opened
from deploy.doctor.runner import Case, DoctorCheck, DoctorFinding, fail, ok, skip, warn
from shared.config.filenames import index_name
from shared.errors import OutboundError
from shared.sitemap import shards
from worker.checks.served_files import FileName, fetch, served
from worker.publishing.targets.target import Target

MOST = 64 * 1024
"""Maximum bytes of the webhook's answer."""

_OK = 200
_SERVED = "configure the web server to serve the web root at base_url"
_SERVE = "configure the web server to serve {root} at {base} (deploy/nginx/sitemapd-files.conf)"


def _public(case: Case, root: Target, file: FileName) -> DoctorFinding:
    """Check that `file` is served as it is on the disk."""
    site, url, path = case.site, case.site.base.url(file.name), f"{root.address}/{file.path}"
    todo = _SERVE.format(root=root.address, base=site.base_url)
    try:
        found = served(site, root, file)
    except OutboundError as error:
        return fail(f"{url}: {error}", todo)
    if found is None:
        return skip(f"{file.path} does not exist")
    if found.fault:
        return fail(
            f"{url} differs from {path}: {found.fault}", f"{todo}, without a cache in between"
        )
    if found.type_fault:
        return warn(
            f"{url} has the Content-Type {found.type_fault}", "correct it in the web server"
        )
    return ok(f"{url}: {len(found.content)} bytes, identical to the file")


def _sitemap(case: Case) -> DoctorFinding:
    with closing(opened(case)) as root:
        names = index_names(case, root) if case.site.index else []
        if not names:
            return skip("no index was published yet")
        return _public(case, root, FileName(names[0], names[0]))


def _file(case: Case) -> DoctorFinding:
    site = case.site
    with closing(opened(case)) as root:
        names = index_names(case, root) if site.index else []
        url = next((url for name in names for url in listed(root, name)), None)
        if url is None:
            return skip("no index lists a file yet")
        name = url.removeprefix(site.base.prefix)
        return _public(case, root, FileName(name, shards.on_disk(name, site.form)))


def _robots(case: Case) -> DoctorFinding:
    base = case.site.base
    if base.path != "/":
        line = f"Sitemap: {base.url(index_name(case.site, 0))}"
        return skip(f"crawlers read {base.origin}/robots.txt: add the line {line} there")
    with closing(opened(case)) as root:
        return _public(case, root, FileName("robots.txt", "robots.txt"))


def _webhook(case: Case) -> DoctorFinding:
    url = f"{(case.to or case.site.base.origin).rstrip('/')}/readyz?accepting"
    todo = "start it (sitemapd up, or sitemapd run web), or set its address with --to"
    try:
        answer = fetch(url, MOST)
    except (OutboundError, ValueError) as error:
        return fail(f"{url}: {error}", todo)
    if answer.status != _OK:
        return fail(f"{url} returns status {answer.status}", todo)
    if len(answer.body) > MOST:
        return fail(f"{url}: no end after {MOST} bytes", todo)
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
