"""What people see of a sitemap, in a real browser: sitemap.html, and the XML with its style."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.system.driver import System, wait_until
from tests.system.nginx import needs

BASE = "https://www.example.com"
SITE = """
[sites.{name}]
base_url = "https://www.example.com/{path}"
web_root = "public/{path}"
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
viewer = {pages}
"""
CONFIG = (
    SITE.format(name="demo", path="", pages="true")
    + "sections = { posts = {} }\n"
    + SITE.format(name="bare", path="bare/", pages="false")
)
PAGES = 1_234
FOUND = sum(str(n).startswith("12") for n in range(PAGES))
XMLNS = {
    "": "http://www.sitemaps.org/schemas/sitemap/0.9",
    ":image": "http://www.google.com/schemas/sitemap-image/1.1",
    ":video": "http://www.google.com/schemas/sitemap-video/1.1",
    ":news": "http://www.google.com/schemas/sitemap-news/0.9",
    ":xhtml": "http://www.w3.org/1999/xhtml",
}
SCRIPT = "&lt;img src=x onerror=alert(1)&gt;&lt;script&gt;alert(2)&lt;/script&gt;"
SHIPPED = Path(__file__).resolve().parents[2] / "worker" / "publishing" / "static"


def document(root: str, children: str) -> str:
    spaces = "".join(f' xmlns{prefix}="{name}"' for prefix, name in XMLNS.items())
    style = '<?xml-stylesheet type="text/css" href="sitemap.css"?>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{style}\n<{root}{spaces}>{children}</{root}>\n'


def refused(said: str) -> bool:
    """Whether a policy was broken; browsers style their own report of broken XML, in vain."""
    return "Content Security" in said and not said.startswith("Applying inline style")


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page on which nothing may fail, ask or be refused by its policy."""
    page, faults = chromium.new_page(viewport={"width": 1000, "height": 800}), list[str]()
    page.set_default_timeout(30_000)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda said: faults.append(said.text) if refused(said.text) else None)
    yield page
    page.close()
    assert faults == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A running system: more pages than fit into one part of the list, and a site without `pages`.

    That one has the two files from before.
    """
    needs("chromium")
    system = System(tmp_path_factory.mktemp("site") / "home")
    system.configure(CONFIG)
    bare = system.root / "bare"
    bare.mkdir()
    copy_shipped(bare)
    system.start()
    try:
        for some in (range(1_000), range(1_000, PAGES)):
            system.send(*(post(n) for n in some))
        system.send({"type": "upsert", "loc": f"{BASE}/about/"})
        sent = system.run(
            "event", "send", f"{BASE}/bare/a", "--site", "bare", "--to", system.address
        )
        assert sent.returncode == 0, sent.stderr
        wait_until((bare / "sitemap.xml").exists, "the other site is published")
        wait_until(lambda: len(system.published()) == PAGES + 1, "all pages are published")
        yield system
    finally:
        assert system.stop() == 0


def copy_shipped(root: Path) -> None:
    for name in ("sitemap.html", "sitemap.css"):
        shutil.copy(SHIPPED / name, root)


def post(n: int) -> dict[str, Any]:
    day = f"2026-{1 + n % 12:02}-{1 + n % 28:02}"
    return {"type": "upsert", "section": "posts", "loc": f"{BASE}/p/{n}", "lastmod": day}


def opened(page: Page, site: System, file: str = "") -> Page:
    page.goto(f"{site.address}/sitemap.html{file}")
    return page


def test_from_the_index_to_a_file_searched_sorted_and_paged(page: Page, site: System) -> None:
    opened(page, site)
    expect(page.get_by_text("2 files list the pages")).to_be_visible()

    page.get_by_role("link", name="posts-1.xml").click()

    rows = page.locator("tbody tr")
    expect(page.get_by_text(f"{PAGES:,} of 50,000 URLs")).to_be_visible()
    expect(rows).to_have_count(1_000)
    size = (site.root / "posts-1.xml").stat().st_size
    expect(page.get_by_text(f"{size:,} of 52,428,800 bytes")).to_be_visible()
    expect(rows.first.get_by_role("link")).to_have_attribute("href", f"{BASE}/p/0")
    page.get_by_role("button", name="Next part").click()
    expect(rows).to_have_count(PAGES - 1_000)
    expect(page.get_by_role("button", name="Next part")).to_be_disabled()

    page.get_by_role("searchbox").fill("/P/12")
    expect(page.locator("#count")).to_have_text(f"{FOUND} of {PAGES:,} found")
    page.get_by_role("button", name="Last modified").click()
    dates = [time.get_attribute("datetime") or "" for time in page.locator("time").all()]
    assert dates == sorted(dates, reverse=True) != sorted(dates)
    page.get_by_role("button", name="Page").click()
    locs = [link.inner_text() for link in page.locator("tbody a").all()]
    assert locs == sorted(locs)
    head = page.get_by_role("columnheader", name="Page")
    expect(head).to_have_attribute("aria-sort", "ascending")
    page.reload()
    expect(page.locator("#count")).to_have_text(f"{FOUND} of {PAGES:,} found")
    page.get_by_role("link", name="All files").click()
    expect(page.get_by_role("link", name="pages-1.xml")).to_be_visible()


def look(page: Page, text: str) -> str:
    """What the page answers about an address, asked by the keyboard alone."""
    box = page.get_by_label("Is my page in this sitemap")
    box.fill(text)
    box.press("Enter")
    answer = page.get_by_role("status").filter(has=page.locator(".verdict"))
    expect(answer).to_have_count(1)
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    return answer.inner_text()


def test_a_page_is_found_and_one_that_is_not_there_gets_its_reason(
    page: Page, site: System
) -> None:
    opened(page, site)
    listed = look(page, f"{BASE}/p/7#comments")
    assert listed.startswith("Yes, it is listed.")
    assert f"{BASE}/p/7 is in posts-1.xml, last modified 2026-08-08." in listed
    assert "#comments" in listed
    assert look(page, "www.example.com/p/8").startswith("Yes")
    assert look(page, "/about/").startswith("Yes")

    slash = look(page, f"{BASE}/ABOUT")
    assert slash.startswith("No, it is not listed.")
    assert f"{BASE}/about/ in pages-1.xml: with a slash at the end, in other capitals" in slash
    other = look(page, "http://example.com/p/9")
    assert "this address is on example.com, which differs by www." in other
    assert "lists https:// addresses only" in other
    assert f"{BASE}/p/9 in posts-1.xml: with https://, on www.example.com" in other
    twin = look(page, f"{BASE}/%70/10?page=2")
    assert f"{BASE}/p/10 in posts-1.xml: escaped in another way, without ?page=2" in twin
    never = look(page, f"{BASE}/it's-never-sent")
    assert f"in none of 2 files with {PAGES + 1:,} pages" in never
    assert "never sent" in never
    assert f"sitemapd entry '{BASE}/it'\\''s-never-sent'" in never
    assert look(page, "javascript:alert(1)").startswith("That is no address of a page.")


def test_a_page_is_looked_up_in_one_request_whatever_the_number_of_files(
    page: Page, site: System
) -> None:
    opened(page, site)
    expect(page.get_by_text("2 files list the pages")).to_be_visible()
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url.removeprefix(site.address)))

    assert look(page, "/p/77").startswith("Yes, it is listed.")
    assert look(page, "/never/sent").startswith("No, it is not listed.")
    assert [each.partition("?")[0] for each in asked] == ["/sitemap-lookup"] * 2

    with page.expect_request("**/posts-1.xml"):
        page.get_by_role("button", name="Search all files for similar addresses").click()
    expect(page.get_by_text("Looking in")).to_have_count(0)
    expect(page.get_by_text(f"in none of 2 files with {PAGES + 1:,} pages")).to_be_visible()


def test_the_page_is_served_as_a_page_that_nobody_may_frame(site: System) -> None:
    status, headers, body = site.get("/sitemap.html")

    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert body == (SHIPPED / "sitemap.html").read_bytes()


@pytest.mark.parametrize("tag", ["style", "script"])
def test_its_policy_names_the_one_style_and_script_that_it_has(tag: str) -> None:
    text = (SHIPPED / "sitemap.html").read_text(encoding="utf-8")

    (only,) = re.findall(rf"(?s)<{tag}>(.*?)</{tag}>", text)

    digest = base64.b64encode(hashlib.sha256(only.encode()).digest()).decode()
    assert f"{tag}-src 'sha256-{digest}';" in text, "write this hash into the policy"
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", text)


def test_switched_off_neither_is_written_and_those_of_before_go(site: System) -> None:
    names = {"sitemap.css", "sitemap.html"}

    assert names <= {path.name for path in site.root.iterdir()}
    assert not names & {path.name for path in (site.root / "bare").iterdir()}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files as they are, of the types that our own server gives them."""

    extensions_map = {".xml": "application/xml", ".css": "text/css", ".html": "text/html"}

    def log_message(self, *_: object) -> None:
        pass


class Static:
    """A web root with files written by hand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        copy_shipped(root)
        handler = functools.partial(Quiet, directory=root)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def write(self, name: str, urls: str) -> None:
        text = document("urlset", urls).encode()
        (self.root / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)

    def index(self, *names: str, name: str = "sitemap.xml") -> None:
        files = "".join(f"<sitemap><loc>https://a.example/{each}</loc></sitemap>" for each in names)
        (self.root / name).write_text(document("sitemapindex", files))

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def static(tmp_path: Path) -> Iterator[Static]:
    static = Static(tmp_path)
    yield static
    static.close()


RICH = f"""\
<url><loc>https://a.example/rich</loc><lastmod>2026-11-20T08:00:00+00:00</lastmod><priority>0.8</priority>
<xhtml:link rel="alternate" hreflang="de" href="https://a.example/de"/>
<image:image><image:loc>https://img.example/1.jpg</image:loc></image:image>
<image:image><image:loc>javascript:alert(3)</image:loc></image:image>
<video:video><video:title>{SCRIPT}</video:title></video:video>
<news:news><news:publication><news:name>The Times</news:name></news:publication></news:news></url>
<url><loc>javascript:alert(4)</loc></url><url><loc>{SCRIPT}</loc></url>"""


def test_extensions_are_counted_and_shown_and_nothing_hostile_runs(
    page: Page, static: Static
) -> None:
    static.index("rich-1.xml")
    static.write("rich-1.xml", RICH)

    page.goto(f"{static.address}/sitemap.html#rich-1.xml")
    page.get_by_text("1 alternate, 2 images, 1 video, 1 news").click()

    details = page.locator("details")
    expect(details).to_contain_text("<script>alert(2)</script>")
    expect(details).to_contain_text("name: The Times")
    expect(page.get_by_text("1 of 1,000 news")).to_be_visible()
    links = [link.get_attribute("href") for link in page.locator("tbody a").all()]
    assert links == [
        "https://a.example/rich", "https://a.example/de", "https://img.example/1.jpg",
    ]  # fmt: skip
    assert page.locator("tbody img, tbody script").count() == 0
    expect(page.locator("tbody")).to_contain_text("javascript:alert(4)")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    expect(page.get_by_role("contentinfo")).to_contain_text("the pages are on https://a.example")


def test_every_form_of_a_file_is_read_and_looked_through(page: Page, static: Static) -> None:
    (static.root / "robots.txt").write_text(
        f"Sitemap: {static.address}/sitemap.xml\nSitemap: {static.address}/sitemap-3.xml\n"
    )
    static.index("a-1.xml.gz", "b.txt", "d-1.txt.gz")
    static.index("c-1.xml", name="sitemap-3.xml")
    static.write("a-1.xml.gz", "<url><loc>https://a.example/packed</loc></url>")
    (static.root / "b.txt").write_text("https://a.example/one\r\nhttps://a.example/two\r\n")
    (static.root / "d-1.txt.gz").write_bytes(gzip.compress(b"https://a.example/both\n"))
    static.write("c-1.xml", "<url><loc>https://a.example/last</loc></url>")
    page.goto(f"{static.address}/sitemap.html")
    expect(page.get_by_text("4 files list")).to_be_visible()

    assert "a-1.xml.gz" in look(page, "https://a.example/packed")
    assert "b.txt" in look(page, "https://a.example/two")
    assert "d-1.txt.gz" in look(page, "https://a.example/both")
    assert "c-1.xml" in look(page, "https://a.example/last")
    page.get_by_role("link", name="b.txt").click()
    expect(page.get_by_text("2 of 50,000 URLs")).to_be_visible()
    page.route("**/c-1.xml", lambda _route: None)  # never answered
    page.get_by_label("Is my page in this sitemap").fill("https://a.example/never")
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_text("Looking in c-1.xml: file 4 of 4")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped after 3 of 4 files: not found in these.")).to_be_visible()


def test_further_indexes_are_found_though_robots_names_none(page: Page, static: Static) -> None:
    static.index("a-1.xml")
    static.index("b-1.xml", name="sitemap-2.xml")

    page.goto(f"{static.address}/sitemap.html")

    expect(page.get_by_text("2 files list")).to_be_visible()


def test_what_cannot_be_read_is_said_in_a_sentence(page: Page, static: Static) -> None:
    page.goto(f"{static.address}/sitemap.html")
    expect(page.get_by_text("No page is listed yet")).to_be_visible()
    static.index("gone-1.xml", "cut-1.xml.gz", "torn-1.xml", "other-1.xml")
    static.write("cut-1.xml.gz", RICH)
    packed = static.root / "cut-1.xml.gz"
    packed.write_bytes(packed.read_bytes()[:-20])
    (static.root / "torn-1.xml").write_text(document("urlset", RICH)[:-30])
    (static.root / "other-1.xml").write_text("<html/>")
    said = {
        "gone-1.xml": "gone-1.xml is not there (404).",
        "cut-1.xml.gz": "its gzip data cannot be unpacked",
        "torn-1.xml": "torn-1.xml is broken XML: error on line",
        "other-1.xml": "its first element is html, not urlset",
        "..%2Fx.xml": "There is no file of that name",
    }

    page.reload()

    for name, sentence in said.items():
        page.goto(f"{static.address}/sitemap.html#{name}")
        expect(page.locator("#summary")).to_contain_text(sentence)
    answer = look(page, "https://a.example/any")
    assert "It may be in a file that cannot be read: gone-1.xml is not there (404)." in answer


GROUNDS: dict[Any, str] = {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 20, 24)"}


def test_the_xml_reads_well_on_any_screen(page: Page, static: Static) -> None:
    static.index("rich-1.xml")
    static.write("rich-1.xml", RICH)
    page.set_viewport_size({"width": 390, "height": 800})

    for name, heading in (("sitemap.xml", "Sitemap index"), ("rich-1.xml", "Sitemap")):
        page.goto(f"{static.address}/{name}")
        said = page.evaluate(
            """() => ["::before", "::after"].map(
                 part => getComputedStyle(document.documentElement, part).content)"""
        )
        assert said[0] == f'"{heading}"'
        assert "open sitemap.html beside this file" in said[1]
        for scheme, ground in GROUNDS.items():
            page.emulate_media(color_scheme=scheme)
            expect(page.locator(":root")).to_have_css("background-color", ground)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for shown in ("loc", "lastmod", "priority", "link", "image", "video", "news"):
        assert page.locator(shown).first.bounding_box(), f"{shown} is shown"
    # An alternate has no text: what is seen of it comes from its attributes.
    assert page.locator("link").evaluate("link => link.getBoundingClientRect().height") > 10
