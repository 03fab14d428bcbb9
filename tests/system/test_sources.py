"""`sitemapd up` reads what CMSes have, and imports what a crawl finds."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.integration.reconcile.cms_cases import BASE, CASES, Case, prismic, strapi
from tests.system.driver import NAMESPACE, System, wait_until
from tests.system.website import WebPage, Website, website
from tests.unit.worker.sources.cms import served

SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
SITE = """
[sites.{name}]
base_url = "{base}"
web_root = "public-{name}"
secrets = ["{secret}"]
"""
SOURCE = """source = "{source}"
source_key = "{key}"
reconcile_hours = 24
[sites.{name}.sections.posts]
"""


class Fed(System):
    """A site for each source."""

    cases: dict[str, Case]
    website: Website

    def listed(self, site: str, base: str = BASE) -> set[str]:
        """The paths that the files of a site list."""
        return {
            (url.findtext(f"{NAMESPACE}loc") or "").removeprefix(base)
            for path in (self.home / f"public-{site}").glob("*-*.xml")
            for url in ET.parse(path).getroot()
        }


def toml(values: dict[str, Any]) -> str:
    """Lines of TOML for lists and tables of strings, which JSON spells alike but for one sign."""
    return "".join(
        f"{name} = {json.dumps(value, separators=(', ', ' = '))}\n"
        for name, value in values.items()
    )


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fed]:
    place = tmp_path_factory.mktemp("sources")
    system = Fed(place / "home", {"XDG_CACHE_HOME": str(place / "cache")})
    with ExitStack() as servers:
        system.website = servers.enter_context(website())
        config = SITE.format(name="demo", base=f"{system.website.base}/", secret=SECRET)
        system.cases = {make.__name__.replace("_", "-"): make() for make in (*CASES, prismic)}
        for name, case in system.cases.items():
            case.server.limited = 3 if case.name == strapi.__name__ else 0
            address = servers.enter_context(served(case.server)) + case.server.address
            config += SITE.format(name=name, base=BASE, secret=SECRET) + SOURCE.format(
                name=name, source=f"{case.name}:{address}", key=case.key
            )
            if case.connection:
                config += f"[sites.{name}.sources.{case.name}]\n{toml(case.connection)}"
        system.configure(config)
        for name in ("demo", *system.cases):
            (system.home / f"public-{name}").mkdir()
        servers.callback(system.end)
        system.start()
        yield system


@pytest.mark.parametrize("make", [*CASES, prismic], ids=lambda make: make.__name__)
def test_a_worker_lists_what_the_interface_of_a_cms_has(fed: Fed, make: Any) -> None:
    name = make.__name__.replace("_", "-")
    wanted = fed.cases[name].listed
    wait_until(lambda: fed.listed(name) == wanted, "its public pages, and no others")


def test_a_crawl_imports_what_is_linked_and_may_be_indexed(fed: Fed) -> None:
    def linking(*paths: str, **members: Any) -> WebPage:
        return WebPage("".join(f'<a href="{path}">x</a>' for path in paths), **members)

    fed.website.pages |= {
        "/robots.txt": WebPage(body=b"User-agent: *\nDisallow: /private\n"),
        "/": linking("/a", "/noindex", "/copy", "/private"),
        "/a": linking("/b", "/missing"),
        "/b": linking("/"),
        "/noindex": linking(head='<meta name="robots" content="noindex">'),
        "/copy": linking(head=f'<link rel="canonical" href="{fed.website.base}/a">'),
        "/private": linking("/c"),
    }
    source = f"crawl:{fed.website.base}/#rate=50,depth=3"
    done = fed.run("import", "--from", source, "--site", "demo")
    assert done.returncode == 0, done.stdout + done.stderr

    base = f"{fed.website.base}/"
    wait_until(lambda: fed.listed("demo", base) == {"", "a", "b"}, "what was found is listed")
    assert "/private" not in fed.website.asked
