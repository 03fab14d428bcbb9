"""Two sites of one `sitemapd up`: shared translation groups, an archive, dates, packed lists."""

from __future__ import annotations

import gzip
import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery

from tests.system.driver import NAMESPACE, System, wait_until

LINK = "{http://www.w3.org/1999/xhtml}link"
DE, FR = "https://www.example.de", "https://www.example.fr"
SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
CONFIG = f"""
[sites.demo]
base_url = "{DE}"
web_root = "public"
translations = "brand"
secrets = ["{SECRET}"]
[sites.demo.sections.posts]
[sites.demo.sections.archive]
archives = "posts"
after_days = 365
fields = {{ changefreq = ["never"] }}
[sites.fr]
base_url = "{FR}"
web_root = "public-fr"
translations = "brand"
secrets = ["{SECRET}"]
[sites.lists]
base_url = "https://lists.example.com"
web_root = "public-lists"
form = "txt.gz"
secrets = ["{SECRET}"]
"""
Links = dict[str, str]


class Family(System):
    """The sites of one installation."""

    def tell(self, site: str, *events: dict[str, Any]) -> dict[str, Any]:
        """Send events to a site; the answer."""
        (file := self.home / "events.json").write_text(json.dumps(events))
        words = ("event", "send", "--file", str(file), "--site", site, "--to", self.address)
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    def tidy(self) -> None:
        """Have the workers do what is scheduled for every ten minutes."""
        broker = f"redis+socket://{self.home}/redis/redis.sock"
        with Celery("schedule", broker=broker, set_as_current=False) as app:
            app.send_task("sitemapd.tidy", queue="sitemapd")

    def pages(self, site: str = "demo", section: str = "pages") -> dict[str, Links]:
        """The pages of a section, with the alternates of each by language."""
        root = self.root if site == "demo" else self.home / f"public-{site}"
        found: dict[str, Links] = {}
        for path in root.glob(f"{section}-*.xml"):
            for url in ET.parse(path).getroot():
                links = {each.get("hreflang", ""): each.get("href", "") for each in url.iter(LINK)}
                found[url.findtext(f"{NAMESPACE}loc") or ""] = links
        return found


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    family = Family(tmp_path_factory.mktemp("family") / "home")
    family.configure(CONFIG)
    for name in ("fr", "lists"):
        (family.home / f"public-{name}").mkdir()
    try:
        family.start()
        yield family
    finally:
        family.end()


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def test_the_versions_of_a_page_on_two_sites_list_each_other_whatever_dies(family: Family) -> None:
    home = {"de": f"{DE}/", "fr": f"{FR}/", "fr-CA": f"{FR}/ca"}
    family.tell("demo", upsert(home["de"], group="home", lang="de"), upsert(f"{DE}/alone"))
    family.kill("worker")
    family.tell("fr", *(upsert(home[code], group="home", lang=code) for code in ("fr", "fr-CA")))

    def both() -> dict[str, Links]:
        return family.pages() | family.pages("fr")

    expected = {**dict.fromkeys(home.values(), home), f"{DE}/alone": {}}
    wait_until(lambda: both() == expected, "one set on both sites")
    family.tell("fr", {"type": "delete", "loc": home["fr-CA"]})
    del home["fr-CA"]
    expected = {**dict.fromkeys(home.values(), home), f"{DE}/alone": {}}
    wait_until(lambda: both() == expected, "the set without the deleted page")
    assert [family.run("verify", "--site", site).returncode for site in ("demo", "fr")] == [0, 0]
    said = family.run("entry", home["de"], "--site", "demo").stdout
    assert "translations changed on fr" in said


def test_check_names_alternates_that_are_not_returned_and_no_group(family: Family) -> None:
    stated = [{"hreflang": code, "href": f"{DE}/{code}"} for code in ("de", "en")]
    family.tell("demo", upsert(f"{DE}/de", alternates=stated), upsert(f"{DE}/en"))
    wait_until(lambda: f"{DE}/en" in family.pages(), "listed")

    said = json.loads(family.run("check", "--no-served", "--site", "demo", "--json").stdout)
    (found,) = [each for each in said["findings"] if each["check"] == "one-way"]
    assert [(each["where"], each["detail"]) for each in found["samples"]] == [
        (f"{DE}/de", f"{DE}/en does not name it")
    ]


def test_old_pages_and_those_of_a_field_are_in_the_archive(family: Family) -> None:
    family.tell(
        "demo",
        upsert(f"{DE}/old", section="posts", lastmod="2020-01-01"),
        upsert(f"{DE}/done", section="posts", changefreq="never"),
        upsert(f"{DE}/new", section="posts"),
    )
    wait_until(lambda: {*family.pages(section="posts")} == {f"{DE}/new"}, "the new post")
    assert {*family.pages(section="archive")} == {f"{DE}/old", f"{DE}/done"}

    # What was listed before the rule: it moves without an event, once the rule is in force.
    family.tell("demo", upsert(f"{DE}/new", section="posts", lastmod="2026-10-01"))
    log = family.home / "logs" / "worker.log"
    in_force = log.read_text().count("configuration in force")
    config = family.home / "sitemapd.toml"
    config.write_text(config.read_text().replace("after_days = 365", "after_days = 1"))
    wait_until(lambda: log.read_text().count("configuration in force") > in_force, "in force")
    family.tidy()
    wait_until(lambda: not family.pages(section="posts"), "it has moved")
    assert f"{DE}/new" in family.pages(section="archive")


def test_years_and_months_are_left_out_with_a_warning(family: Family) -> None:
    said = family.tell(
        "demo", upsert(f"{DE}/year", lastmod="2026"), upsert(f"{DE}/month", lastmod="2026-11")
    )
    wait_until(lambda: {f"{DE}/year", f"{DE}/month"} <= family.pages().keys(), "both are listed")

    warned = [step["what"] for step in said["steps"] if step["step"] == "warning"]
    assert [each.split(" names")[0] for each in warned] == [
        "lastmod: left out: 2026", "lastmod: left out: 2026-11",
    ]  # fmt: skip
    assert family.published()[f"{DE}/year"] is None


def test_a_packed_list_is_what_the_index_names(family: Family) -> None:
    pages = [f"https://lists.example.com/{n}" for n in range(3)]
    family.tell("lists", *map(upsert, pages))
    file = family.home / "public-lists" / "pages-1.txt.gz"
    wait_until(file.with_name("sitemap.xml").exists, "the list and its index are there")

    assert gzip.decompress(file.read_bytes()).decode().split() == pages
    index = ET.parse(file.with_name("sitemap.xml")).getroot()
    named = [each.text for each in index.iter(f"{NAMESPACE}loc")]
    assert named == ["https://lists.example.com/pages-1.txt.gz"]
