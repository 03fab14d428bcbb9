"""A worker looks at the pages of a small real site: what is broken is named, leaves and returns."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.system.driver import System, wait_until

TEXT = "<p>Bees live in hives, and make honey of the nectar that they find in flowers.</p>"
CONFIG = """
[sites.demo]
base_url = "{base}"
web_root = "public"
secrets = ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="]
tokens = ["only-for-these-tests"]

[sites.demo.pages]
interval = 0.05
confirm_minutes = 0.01
broken = "unlist"
gate = true
prove_lastmod = true
"""


class Website:
    """A site of HTML pages: path -> status, text."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, str]] = {}
        self.asked: list[str] = []
        website = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                website.asked.append(self.path)
                status, text = website.pages.get(self.path, (404, "<p>Nothing is here.</p>"))
                body = f"<!doctype html><html lang=en><title>T</title><main>{text}</main></html>"
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                """Keep the test's output quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def end(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def website() -> Iterator[Website]:
    website = Website()
    yield website
    website.end()


@pytest.fixture
def visited(tmp_path: Path, website: Website) -> Iterator[System]:
    system = System(tmp_path / "home")
    system.configure(CONFIG.format(base=website.base))
    system.start()
    yield system
    system.end()


def send(system: System, page: str, *members: str) -> None:
    done = system.run("event", "send", page, "--to", system.address, *members)
    assert done.returncode == 0, done.stderr


def shown(system: System, page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(system.run("entry", page, "--json").stdout)
    return found


def test_pages_are_listed_once_seen_dated_by_proof_and_leave_when_broken(
    visited: System, website: Website
) -> None:
    page = f"{website.base}/bees"
    send(visited, page, "--lastmod", "2026-01-01")
    wait_until(lambda: "/bees" in website.asked, "the new page is looked at")
    assert page not in visited.published()
    website.pages["/bees"] = (200, TEXT)
    wait_until(lambda: page in visited.published(), "listed once it was seen", 90)

    wait_until(lambda: "fingerprint" in shown(visited, page).get("looked", {}), "a fingerprint")
    website.pages["/bees"] = (200, TEXT.replace("honey", "wax"))
    send(visited, page, "--lastmod", "2026-02-02")
    wait_until(lambda: shown(visited, page).get("lastmod") == "2026-02-02", "the date moved", 60)
    looked = shown(visited, page)["looked"]
    assert looked["before"] != looked["fingerprint"]

    website.pages["/bees"] = (410, "gone")
    send(visited, page, "--lastmod", "2026-03-03", "--id", "7")
    wait_until(lambda: page not in visited.published(), "the broken page left", 90)
    said = visited.run("check", "--pages")
    assert "answers 410" in said.stdout
    assert "unlisted: answers 410" in [each["decision"] for each in shown(visited, page)["lately"]]
