"""A worker looks at the pages of small real sites: what is broken is named and leaves. Meanwhile
another site is polled, by the minute.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.integration.engines import Engine, engine, reply
from tests.system.driver import System, wait_until
from tests.system.website import WebPage, Website, website
from tests.unit.worker.sources.cms import Asked, Reply, served

TEXT = "<p>Bees live in hives, and make honey of the nectar that they find in flowers.</p>"
GONE = WebPage(status=410)
CONFIG = """
[alerts]
group_seconds = 0
[alerts.pages]
sites = ["large"]
after_minutes = 0
[alerts.slack]
url = "{slack}"
allow_private = true
[sites.demo]
base_url = "{demo}"
web_root = "public"
secrets = ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="]
tokens = ["only-for-these-tests"]
[sites.demo.pages]
interval = 0.05
confirm_minutes = 0.01
broken = "unlist"
gate = true
prove_lastmod = true

[sites.large]
base_url = "{large}"
web_root = "public-large"
secrets = ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="]
[sites.large.pages]
interval = 0

[sites.late]
base_url = "{late}"
web_root = "public-late"
secrets = ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="]
[sites.late.pages]
gate = true
wait_hours = 0.001

[sites.stated]
base_url = "{stated}"
web_root = "public-stated"
secrets = ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="]

[sites.polled]
base_url = "{other}"
web_root = "public-polled"
secrets = ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="]
source = "sitemap:{polled}/sitemap.xml"
reconcile_hours = 0.0003
"""
OTHER = "https://www.example.com/"
STATED = "https://shop.example.com/"
WAIT_S = 3.6
"""Seconds that the gate of the last site waits at most."""


class Polled:
    """A sitemap with an ETag, and the statuses of its answers."""

    def __init__(self) -> None:
        self.pages = ["a", "b"]
        self.statuses: list[int] = []

    def __call__(self, asked: Asked) -> Reply:
        urls = "".join(f"<url><loc>{OTHER}{path}</loc></url>" for path in self.pages)
        text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
        tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:8]}"'
        same = asked.headers.get("if-none-match") == tag
        self.statuses.append(304 if same else 200)
        return Reply(b"" if same else text.encode(), self.statuses[-1], {"ETag": tag})


class Visited(System):
    """Three sites in one installation, each at a web server of its own, one that is polled, and one
    whose sender says what its pages answer.
    """

    demo: Website
    large: Website
    late: Website
    slack: Engine
    polled: Polled

    def listed(self, page: str, site: str = "demo") -> bool:
        """Whether the files of a site list a page."""
        root = self.home / ("public" if site == "demo" else f"public-{site}")
        return any(f"<loc>{page}</loc>" in path.read_text() for path in root.glob("pages-*.xml"))

    def tell(self, *events: dict[str, Any], site: str = "demo") -> None:
        """Send events to a site, in one delivery."""
        (file := self.home / "events.json").write_text(json.dumps(events))
        words = ("event", "send", "--file", str(file), "--site", site, "--to", self.address)
        done = self.run(*words)
        assert done.returncode == 0, done.stderr

    def tell_page(self, page: str, **members: str) -> None:
        self.tell({"type": "upsert", "loc": page, **members})

    def shown(self, page: str, site: str = "demo") -> dict[str, Any]:
        """What the command entry says of a page."""
        done = self.run("entry", page, "--site", site, "--json")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def decisions(self, page: str) -> list[str]:
        return [each["decision"] for each in self.shown(page)["lately"]]

    def pages_found(self, site: str) -> tuple[int, dict[str, Any]]:
        """Exit code and answer of check --pages."""
        done = self.run("check", "--pages", "--site", site, "--json")
        return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    system = Visited(tmp_path_factory.mktemp("looks") / "home")
    with ExitStack() as servers:
        for name in ("demo", "large", "late"):
            setattr(system, name, servers.enter_context(website()))
        system.slack = servers.enter_context(engine(reply(200, b"ok")))
        system.polled = Polled()
        url = servers.enter_context(served(system.polled))
        bases = {name: getattr(system, name).base for name in ("demo", "large", "late")}
        config = {"slack": system.slack.url, "polled": url, "other": OTHER, "stated": STATED}
        system.configure(CONFIG.format(**config, **bases))
        for name in ("large", "late", "stated", "polled"):
            (system.home / f"public-{name}").mkdir()
        servers.callback(system.end)
        system.start()
        yield system


def test_pages_are_listed_once_seen_dated_by_proof_and_leave_when_broken(visited: Visited) -> None:
    pages, page = visited.demo.pages, f"{visited.demo.base}/bees"
    visited.tell_page(page, lastmod="2026-01-01")
    wait_until(lambda: "/bees" in visited.demo.asked, "the new page is looked at")
    assert page not in visited.published()
    assert "a new page waits until it was seen" in visited.shown(page)["why"]
    pages["/bees"] = WebPage(TEXT)
    wait_until(lambda: page in visited.published(), "listed once it was seen")
    wait_until(lambda: "fingerprint" in visited.shown(page).get("looked", {}), "a fingerprint")

    # A save that changed nothing that readers see, and another template around the text.
    pages["/bees"] = WebPage(TEXT, around="<nav>Home</nav><style>p {color: red}</style>")
    visited.tell_page(page, lastmod="2026-01-20")
    same = "its date stays: the page is as before"
    wait_until(lambda: any(same in each for each in visited.decisions(page)), "no proof")
    assert visited.published()[page] == "2026-01-01"

    pages["/bees"] = WebPage(TEXT.replace("honey", "wax"))
    visited.tell_page(page, lastmod="2026-02-02")
    wait_until(lambda: visited.published()[page] == "2026-02-02", "the date moved")
    looked = visited.shown(page)["looked"]
    assert looked["before"] != looked["fingerprint"]

    pages["/bees"] = GONE
    visited.tell_page(page, lastmod="2026-03-03", id="7")
    wait_until(lambda: page not in visited.published(), "the broken page left")
    assert "answers 410" in visited.run("check", "--pages", "--site", "demo").stdout
    assert "unlisted: answers 410" in visited.decisions(page)


@pytest.fixture(scope="module")
def large(visited: Visited) -> Visited:
    """The same, once the large site has its pages: some answer what no page of a sitemap does."""
    site, base = visited.large, visited.large.base
    busy = iter([WebPage(status=503, headers={"Retry-After": "2"})])
    site.pages |= {f"/good/{n}": WebPage(TEXT) for n in range(20)}
    site.pages |= {
        "/robots.txt": WebPage(body=b"User-agent: *\nDisallow: /private\n"),
        "/gone": WebPage(status=404),
        "/moved": WebPage(status=301, headers={"Location": "/good/1"}),
        "/other": WebPage(TEXT, head=f'<link rel="canonical" href="{base}/good/1">'),
        "/header": WebPage(TEXT, headers={"X-Robots-Tag": "noindex"}),
        "/meta": WebPage(TEXT, head='<meta name="robots" content="noindex">'),
        "/english": WebPage(TEXT),
        "/archive": WebPage(body=b"PK", headers={"Content-Type": "application/zip"}),
        "/private": WebPage(TEXT),
        "/busy": lambda: next(busy, WebPage(TEXT)),
    }
    groups = {"/english": {"group": "g", "lang": "de"}, "/good/0": {"group": "g", "lang": "en"}}
    visited.tell(
        *({"type": "upsert", "loc": base + path, **groups.get(path, {})} for path in paths(site)),
        site="large",
    )
    return visited


def paths(site: Website) -> list[str]:
    return [path for path in site.pages if path != "/robots.txt"]


def all_are_found(visited: Visited) -> None:
    """Wait until of the large site everything is named that is to be, and nothing else."""
    base = visited.large.base
    expected = {
        "/gone": ("broken", "answers 404"),
        "/moved": ("broken", f"redirects to {base}/good/1 (301)"),
        "/other": ("broken", f"its canonical URL is {base}/good/1"),
        "/header": ("broken", "noindex in its header"),
        "/meta": ("broken", "noindex in its meta robots"),
        "/english": ("odd", "is in en, and listed for de"),
        "/archive": ("odd", "is no page, but application/zip"),
    }

    def found() -> dict[str, tuple[str, str]]:
        said = visited.pages_found("large")[1]["pages"]
        return {each["loc"].removeprefix(base): (each["grade"], each["why"]) for each in said}

    wait_until(lambda: found() == expected, "all of them are found")


def test_what_no_page_of_a_sitemap_answers_is_named_and_an_alarm_begins(large: Visited) -> None:
    site, base = large.large, large.large.base
    all_are_found(large)
    wait_until(lambda: large.pages_found("large")[1]["alarms"], "an alarm")
    code, said = large.pages_found("large")
    assert code == 1
    assert "of the pages in a sample are broken: 5 of " in said["alarms"][0]
    assert "/private" not in site.asked
    place = site.asked.index("/busy")
    (_, refused), (_, after) = site.requests[place : place + 2]
    assert after - refused >= 2, "no page of the host is asked for before Retry-After"
    assert all(large.listed(base + path, "large") for path in paths(site)), "they are only named"


def test_an_alarm_is_told_and_so_is_a_loss_of_pages(large: Visited) -> None:
    base = large.large.base
    all_are_found(large)
    wait_until(lambda: large.slack.asked, "the channel is told")
    assert b"at large" in large.slack.asked[0].body
    assert b"are broken" in large.slack.asked[0].body

    gone = ({"type": "delete", "loc": f"{base}/good/{n}"} for n in range(10, 16))
    large.tell(*gone, site="large")

    def alarms() -> str:
        return " ".join(large.pages_found("large")[1]["alarms"])

    wait_until(lambda: "23 pages are listed, 21 % fewer than the 29" in alarms(), "of all")


def test_a_gate_opens_at_its_deadline(visited: Visited) -> None:
    page, sent = f"{visited.late.base}/slow", time.monotonic()
    visited.tell({"type": "upsert", "loc": page}, site="late")
    wait_until(lambda: visited.listed(page, "late"), "listed though it was never good")

    assert time.monotonic() - sent >= WAIT_S
    wait_until(lambda: "/slow" in visited.late.asked, "it was looked at")
    wait_until(lambda: visited.pages_found("late")[1]["pages"], "it is named")


def test_pages_of_which_their_sender_says_what_they_answer_are_treated_so(
    visited: Visited,
) -> None:
    pages = {n: f"{STATED}{n}" for n in range(1, 7)}
    visited.tell(*({"type": "upsert", "loc": page} for page in pages.values()), site="stated")
    wait_until(lambda: all(visited.listed(page, "stated") for page in pages.values()), "listed")
    visited.tell(
        {"type": "upsert", "loc": pages[1], "status": 404},
        {"type": "upsert", "loc": pages[2], "status": 301},
        {"type": "upsert", "loc": pages[3], "redirect_to": pages[4]},
        {"type": "upsert", "loc": pages[5], "status": 200},
        {"type": "upsert", "loc": pages[6], "status": 500},
        site="stated",
    )
    gone = [pages[n] for n in (1, 2, 3)]
    wait_until(lambda: not any(visited.listed(page, "stated") for page in gone), "they left")

    assert all(visited.listed(pages[n], "stated") for n in (4, 5, 6))
    (why,) = [each["decision"] for each in visited.shown(gone[2], "stated")["lately"]][-1:]
    assert why == f"moved for good to {pages[4]}"


def test_a_sitemap_is_polled_and_costs_a_304_while_it_stays(visited: Visited) -> None:
    wait_until(lambda: visited.listed(f"{OTHER}a", "polled"), "the first poll")
    wait_until(lambda: 304 in visited.polled.statuses, "the next one, a minute later", 150)
    assert visited.polled.statuses[0] == 200

    visited.polled.pages = ["b", "c"]
    visited.tell({"type": "resync"}, site="polled")
    wait_until(lambda: visited.listed(f"{OTHER}c", "polled"), "what it says now", 150)
    assert not visited.listed(f"{OTHER}a", "polled")
