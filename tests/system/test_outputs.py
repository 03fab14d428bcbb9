"""Further outputs of a site as others read them: over HTTP, from real processes."""

from __future__ import annotations

import gzip
import socket
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import html5lib
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.system.driver import NAMESPACE, System, wait_until

CONFIG = """
[sites.demo]
base_url = "https://www.example.com/"
web_root = "public"
robots = "create"
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
tokens = ["only-for-these-tests"]
[sites.demo.outputs]
{outputs}
"""


def started(home: Path, outputs: str) -> Iterator[System]:
    system = System(home)
    system.configure(CONFIG.format(outputs=outputs))
    try:
        system.start()
        yield system
    finally:
        system.end()


@pytest.fixture
def packed(tmp_path: Path) -> Iterator[System]:
    yield from started(tmp_path / "home", "gzip_index = true")


def page(path: str, **members: object) -> dict[str, object]:
    return {"type": "upsert", "loc": f"https://www.example.com/{path}", **members}


def test_a_packed_index_is_named_by_robots_txt_and_leads_to_every_page(packed: System) -> None:
    packed.send(page("a"), page("b"))
    wait_until(lambda: packed.get("/robots.txt")[0] == 200, "robots.txt is there")
    named = [
        line.split()[1]
        for line in packed.get("/robots.txt")[2].decode().splitlines()
        if line.startswith("Sitemap:")
    ]

    status, headers, body = packed.get("/sitemap.xml.gz")

    assert named == ["https://www.example.com/sitemap.xml.gz"]
    assert (status, headers["Content-Type"]) == (200, "application/gzip")
    assert headers["Content-Encoding"] is None
    listed = [
        loc.text or "" for loc in ET.fromstring(gzip.decompress(body)).iter(f"{NAMESPACE}loc")
    ]
    assert listed == ["https://www.example.com/pages-1.xml"]
    pages = packed.get("/pages-1.xml")[2].decode()
    assert "https://www.example.com/a<" in pages
    # Who asks for the name of before gets the same index, unpacked.
    status, headers, body = packed.get("/sitemap.xml")
    assert (status, headers["Content-Type"]) == (200, "application/xml")
    assert ET.fromstring(body).tag == f"{NAMESPACE}sitemapindex"
    assert packed.run("verify").returncode == 0


@pytest.fixture
def source(tmp_path: Path) -> Iterator[System]:
    """A host whose pages are files, so that a client can fetch what a change list names."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    system = System(tmp_path / "home")
    base = f"http://127.0.0.1:{port}"
    config = CONFIG.format(outputs="change_list = true")
    system.configure(config.replace("https://www.example.com", base))
    system.address = base
    try:
        system.start()
        yield system
    finally:
        system.end()


class Mirror:
    """A destination of ResourceSync: the client of the standard's editors, in a process."""

    def __init__(self, base: str, home: Path) -> None:
        self.base, self.root = base, home / "copy"
        self.root.mkdir(parents=True)

    def sync(self, *arguments: str) -> None:
        program = Path(sys.executable).with_name("resync-sync")
        ended = subprocess.run(
            [
                sys.executable, program, *arguments, "--delete",
                "--sitemap", f"{self.base}/sitemap.xml", f"{self.base}/", str(self.root),
            ],
            cwd=self.root.parent, check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        said = ended.stdout + ended.stderr
        assert ended.returncode == 0, said
        assert "FatalError" not in said, said  # and ends with 0 all the same

    def pages(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.root.iterdir()}


def write(system: System, name: str, text: str) -> dict[str, object]:
    """Put a page onto the host; return its event."""
    (system.root / name).write_text(text)
    stated = datetime.fromtimestamp((system.root / name).stat().st_mtime, UTC)
    return {"type": "upsert", "loc": f"{system.base}/{name}", "lastmod": stated.isoformat()}


def test_a_client_of_resourcesync_stays_equal_through_created_updated_and_deleted_pages(
    source: System, tmp_path: Path
) -> None:
    mirror = Mirror(source.base, tmp_path / "mirror")
    source.send(write(source, "a.html", "a"), write(source, "b.html", "b"))
    source.quiet()
    # The sitemap is what a client begins with: it is no Resource List, and named to it.
    mirror.sync("--baseline")
    synchronised = int(time.time()) + 1
    wait_until(lambda: time.time() > synchronised, "the next second")
    assert mirror.pages() == {"a.html": "a", "b.html": "b"}

    source.send(write(source, "a.html", "a, again"), write(source, "c.html", "c"))
    (source.root / "b.html").unlink()
    source.send({"type": "delete", "loc": f"{source.base}/b.html"})
    source.quiet()
    # The client begins at the newest lastmod that it saw, unless it is told when it last looked: it
    # drops a page that a list both creates and deletes.
    since = datetime.fromtimestamp(synchronised, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    at = f"{source.base}/changelist.xml"
    mirror.sync("--incremental", "--from", since, "--changelist-uri", at)

    assert mirror.pages() == {"a.html": "a, again", "c.html": "c"}


def test_the_change_list_is_found_by_the_well_known_address(source: System) -> None:
    source.send(write(source, "a.html", "a"))
    source.quiet()
    path, found = "/.well-known/resourcesync", list[str]()
    for capability in ("description", "capabilitylist", "changelist"):
        status, headers, body = source.get(path)
        assert (status, headers["Content-Type"]) == (200, "application/xml")
        root = ET.fromstring(body)
        stated = root.find("{http://www.openarchives.org/rs/terms/}md")
        assert stated is not None
        assert stated.get("capability") == capability
        found = [loc.text or "" for loc in root.iter(f"{NAMESPACE}loc")]
        path = urlsplit(found[0]).path
    assert found == [f"{source.base}/a.html"]
    assert "changelist" not in source.get("/robots.txt")[2].decode()
    assert source.run("verify").returncode == 0
    (source.root / "changelist.xml").write_text("theirs")
    assert "changelist.xml" in source.run("verify").stdout


@pytest.fixture
def described(tmp_path: Path) -> Iterator[System]:
    yield from started(tmp_path / "home", 'llms = true\nllms_summary = "Where we are tested."')


def test_llms_txt_names_what_events_say_of_their_pages(described: System) -> None:
    described.send(
        page("a", title="About us", description="Who we are, and since when."),
        page("b", title="[Prices](x)"),
        page("c"),
    )
    described.quiet()

    status, headers, body = described.get("/llms.txt")

    assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert body.decode().split("\n")[:4] == ["# www.example.com", "", "> Where we are tested.", ""]
    assert sorted(line for line in body.decode().split("\n") if line.startswith("- ")) == [
        "- [&#91;Prices&#93;(x)](https://www.example.com/b)",
        "- [About us](https://www.example.com/a): Who we are, and since when.",
    ]
    described.send({"type": "delete", "loc": "https://www.example.com/a"})
    described.quiet()
    assert "About us" not in described.get("/llms.txt")[2].decode()
    assert described.run("verify").returncode == 0


TITLES = ["About us", "Prices & plans", "\u65e5\u672c\u8a9e", "A rather long title of a page " * 4]


VISITED = "html = true\n[sites.demo.sections]\nposts = {}\n"


@pytest.fixture
def visited(tmp_path: Path) -> Iterator[System]:
    yield from started(tmp_path / "home", VISITED)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """The same with pages, for those who only look."""
    with contextmanager(started)(tmp_path_factory.mktemp("filled") / "home", VISITED) as system:
        pages = [page(f"p/{n}", title=TITLES[n % 4] + f" {n}") for n in range(1_100)]
        for n in range(0, 1_100, 550):
            system.send(*pages[n : n + 550])
        system.send(page("posts/caf%C3%A9", section="posts"))
        system.quiet()
        yield system


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_visitor_finds_each_page_by_links_alone(
    filled: System, chromium: Browser, scheme: Literal["light", "dark"], width: int
) -> None:
    context = chromium.new_context(
        java_script_enabled=False, color_scheme=scheme, viewport={"width": width, "height": 800}
    )
    reader = context.new_page()
    found, seen, left = list[str](), set[str](), [f"{filled.address}/sitemap-contents.html"]
    while left:
        at = left.pop()
        if at in seen:
            continue
        seen.add(at)
        answer = reader.goto(at)
        assert answer is not None
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert reader.evaluate("document.compatMode") == "CSS1Compat"
        assert reader.evaluate("document.body.scrollWidth <= innerWidth"), "nothing runs off"
        assert "noindex" not in reader.content()
        for href in reader.eval_on_selector_all("a", "found => found.map(each => each.href)"):
            (found if href.startswith("https://www.example.com/") else left).append(href)
    context.close()

    assert sorted(found) == sorted(
        [f"https://www.example.com/p/{n}" for n in range(1_100)]
        + ["https://www.example.com/posts/caf%C3%A9"]
    )
    assert len(seen) == 5, "the contents, three pages of 500, one of posts"
    with chromium.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 800}
    ) as scripted:
        looking = scripted.new_page()
        for name in ("sitemap-contents.html", "sitemap-pages-1-2.html"):
            looking.goto(f"{filled.address}/{name}")
            found_barriers = Axe().run(looking)
            assert found_barriers.violations_count == 0, found_barriers.generate_report()


def test_the_pages_for_visitors_are_valid_html(visited: System) -> None:
    visited.send(page("a", title='<b>&"'), page("b?x=1&amp;y=2"), page("c", section="posts"))
    visited.quiet()

    for name in ("sitemap-contents.html", "sitemap-pages-1-1.html", "sitemap-posts-1-1.html"):
        html5lib.HTMLParser(strict=True).parse(visited.get(f"/{name}")[2])
    assert visited.get("/sitemap-contents.css")[1]["Content-Type"] == "text/css; charset=utf-8"
    assert visited.run("verify").returncode == 0
