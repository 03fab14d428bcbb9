"""Checks of robots.txt: sitemapd's lines, and permission to fetch the published files."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from itertools import islice

from lxml import etree
from protego import Protego

from deploy.doctor.root import index_names, listed, opened
from deploy.doctor.runner import Case, DoctorCheck, DoctorFinding, fail, ok, skip, warn
from shared.errors import RobotsError
from shared.sitemap import robots, shards
from shared.store.publishing.publish_state import PublishState
from worker.publishing.indexes import named
from worker.publishing.web_root import WebRoot

AGENT = "Googlebot"
FILES, PAGES, MOST = 10, 500, 16 * 2**20
"""Files that are read, pages tried of each, and bytes read of each."""


def _robots(case: Case) -> DoctorFinding:
    site = case.site
    if site.base.path != "/":
        line = f"Sitemap: {site.base.url(shards.index_name(0))}"
        detail = f"crawlers read {site.base.origin}/robots.txt, which is not in this web root"
        if site.robots == "off":
            return skip(f"{detail}: add the line {line} there")
        return warn(
            f"{detail}: sitemapd does not write it",
            f'add the line {line} there, and set robots = "off"',
        )
    with closing(opened(case)) as root:
        content = root.read("robots.txt")
        ours = named(PublishState(case.client, case.name), site)
        if content is None:
            return _absent(case, ours)
        try:
            edited = robots.edit(content, ours)
        except RobotsError as error:
            todo = "correct robots.txt by hand: sitemapd does not change it as it is"
            return fail(str(error), todo) if site.robots != "off" else warn(str(error), todo)
        parsed = Protego.parse(content.decode("utf-8-sig"))
        missing = [url for url in ours if url not in set(parsed.sitemaps)]
        if blocked := [url for url in ours if not parsed.can_fetch(url, AGENT)]:
            todo = "remove the Disallow that matches it from robots.txt"
            return fail(f"{AGENT} may not fetch {blocked[0]}", todo)
        if site.robots != "off" and edited != content:
            return fail(
                "the lines of sitemapd in robots.txt are wrong or missing",
                f"start a worker, which corrects them; or run: sitemapd rebuild --site {case.name}",
            )
        pages = [*_pages(case, root)]
        hidden = [url for url in pages if not parsed.can_fetch(url, AGENT)]
    if hidden:
        detail = f"{AGENT} may not fetch {len(hidden)} of {len(pages)} sampled pages: {hidden[0]}"
        return warn(detail, "allow them in robots.txt, or delete them by events of type delete")
    if missing:
        todo = 'add it to robots.txt (robots = "edit"), or submit it to each search engine'
        return warn(f"robots.txt does not name {missing[0]}", todo)
    return ok(f"names {len(ours)} sitemaps; {AGENT} may fetch them and {len(pages)} sampled pages")


def _absent(case: Case, ours: list[str]) -> DoctorFinding:
    if case.site.robots == "create" and ours:
        todo = f"start a worker, which creates it; or run: sitemapd rebuild --site {case.name}"
        return fail("robots.txt does not exist", todo)
    if case.site.robots == "edit":
        todo = 'create one, to which sitemapd adds its lines; or set robots = "create"'
        return warn("robots.txt does not exist, so it cannot be edited", todo)
    if case.site.robots == "off":
        return skip(
            'robots = "off", and the file does not exist: add the sitemap to your robots.txt'
        )
    return ok("no sitemap is published yet")


def _pages(case: Case, root: WebRoot) -> Iterator[str]:
    """Yield some of the pages that the newest files list."""
    site = case.site
    urls = [
        url
        for index in (index_names(case, root) if site.index else ())
        for url in listed(root, index)
    ]
    # The newest pages are in the last files.
    for url in urls[-FILES:]:
        name = shards.on_disk(url.removeprefix(site.base.prefix), site.form)
        packed = root.read_own(name) or b""
        with gzip.open(BytesIO(packed)) if name.endswith(".gz") else BytesIO(packed) as file:
            content = file.read(MOST)
        yield from islice(_locs(content, site.form), PAGES)


def _locs(content: bytes, form: str) -> Iterator[str]:
    if form == "txt":
        yield from content.decode().splitlines()
        return
    parser = etree.XMLPullParser(("end",), tag=_LOC, resolve_entities=False, no_network=True)
    parser.feed(content)
    for _, element in parser.read_events():
        if element.getparent().tag == _URL:
            yield element.text


_URL = "{http://www.sitemaps.org/schemas/sitemap/0.9}url"
_LOC = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"

CHECKS = (
    DoctorCheck(
        "robots.txt", "the lines of sitemapd, and whether listed pages are disallowed", _robots,
        "make robots.txt a regular file that this user can read", store=True, needs="web root",
    ),
)  # fmt: skip
