"""Checks of robots.txt: sitemapd's lines, and permission to fetch the published files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from itertools import islice

from deploy.doctor.root import index_names, listed, opened
from deploy.doctor.runner import Case, DoctorCheck, DoctorFinding, fail, ok, skip, warn
from shared.config.filenames import index_name
from shared.errors import RobotsError
from shared.sitemap import robots, shards
from shared.store.publishing.publish_state import PublishState
from worker.checks.robots_check import AGENTS, RobotsCheck
from worker.publishing.indexes import named
from worker.publishing.targets.target import Target
from worker.sources.records import SourceRecord
from worker.sources.sitemaps import pages_in
from worker.sources.source_streams import Document

FILES, PAGES = 10, 500
"""Files that are read, and pages tried of each."""


def _robots(case: Case) -> DoctorFinding:
    site = case.site
    if site.base.path != "/":
        line = f"Sitemap: {site.base.url(index_name(site, 0))}"
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
        barrier = RobotsCheck(content, "robots.txt")
        missing = [url for url in ours if url not in barrier.sitemaps]
        blocked = {url: barrier.barred(url) for url in ours}
        for url, agents in blocked.items():
            if AGENTS[0] in agents:
                todo = "remove the Disallow that matches it from robots.txt"
                return fail(f"{', '.join(agents)} may not fetch {url}", todo)
        if site.robots != "off" and edited != content:
            return fail(
                "the lines of sitemapd in robots.txt are wrong or missing",
                f"start a worker, which corrects them; or run: sitemapd rebuild --site {case.name}",
            )
        pages = [*_pages(case, root)]
    blocked |= {url: barrier.barred(url) for url in barrier.suspects(pages, len(site.base.origin))}
    if hidden := [url for url, agents in blocked.items() if agents]:
        detail = f"{', '.join(blocked[hidden[0]])} may not fetch {hidden[0]}, one of {len(hidden)}"
        todo = "allow them in robots.txt, or delete them by events of type delete"
        return warn(f"{detail} of {len(ours) + len(pages)} files and sampled pages", todo)
    if missing:
        todo = 'add it to robots.txt (robots = "edit"), or submit it to each search engine'
        return warn(f"robots.txt does not name {missing[0]}", todo)
    return ok(f"names {len(ours)} sitemaps; crawlers may fetch them and {len(pages)} sampled pages")


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


def _pages(case: Case, root: Target) -> Iterator[str]:
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
        if content := root.read_own(name):
            with Document(name, BytesIO(content), f"{root.address}/{name}") as document:
                for item in islice(pages_in(document), PAGES):
                    if isinstance(item, SourceRecord):
                        yield item.loc


CHECKS = (
    DoctorCheck(
        "robots.txt", "the lines of sitemapd, and whether listed pages are disallowed", _robots,
        "make robots.txt a regular file that this user can read", store=True, needs="web root",
    ),
)  # fmt: skip
