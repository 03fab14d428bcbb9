"""One index of two hosts as crawlers fetch it: the other is listed once its robots.txt names it."""

from __future__ import annotations

import json
import socket
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.system.driver import NAMESPACE, System, wait_until

CONFIG = """
[sites.demo]
base_url = "http://localhost:{port}/"
web_root = "public"
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
tokens = ["only-for-these-tests"]
[sites.demo.outputs]
hosts = ["shop"]
[sites.shop]
base_url = "http://127.0.0.1:{port}/"
web_root = "shop"
robots = "create"
tokens = ["only-for-the-shop-here"]
"""
CONSENT = """
[sites.shop.outputs]
robots_also = ["http://localhost:{port}/sitemap-hosts.xml"]
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def two(tmp_path: Path, port: int) -> Iterator[System]:
    system = System(tmp_path / "home")
    system.configure(CONFIG.format(port=port))
    (system.home / "shop").mkdir()
    system.address = f"http://127.0.0.1:{port}"
    try:
        system.start()
        yield system
    finally:
        system.end()


def listed(url: str) -> dict[str, str | None]:
    """Each loc with its lastmod, of an index or of a sitemap."""
    with urlopen(url, timeout=10) as answer:
        tree = ET.fromstring(answer.read())
    return {
        each.findtext(f"{NAMESPACE}loc") or "": each.findtext(f"{NAMESPACE}lastmod")
        for each in tree
    }


def test_another_host_is_listed_once_its_robots_txt_names_the_index(two: System, port: int) -> None:
    own, shop = f"http://localhost:{port}/", f"http://127.0.0.1:{port}/"
    index, config = f"{own}sitemap-hosts.xml", two.home / "sitemapd.toml"
    for page, site in ((f"{own}a", "demo"), (f"{shop}b", "shop")):
        assert two.run("event", "send", page, "--site", site).returncode == 0
    wait_until(lambda: "Add the line" in two.run("status").stdout, "status says what is missing")
    assert f"Sitemap: {index}" in two.run("status").stdout
    assert [*listed(index)] == [f"{own}pages-1.xml"]
    found = json.loads(two.run("check", "--site", "demo", "--json").stdout)
    assert "not-named" in json.dumps(found)

    config.write_text(config.read_text() + CONSENT.format(port=port))
    wait_until(lambda: len(listed(index)) == 2, "the other host is listed")
    assert [*listed(index)] == [f"{own}pages-1.xml", f"{shop}pages-1.xml"]
    with urlopen(f"{shop}robots.txt", timeout=10) as answer:
        named = answer.read().decode().splitlines()
    assert f"Sitemap: {index}" in named
    assert f"Sitemap: {shop}sitemap.xml" in named

    def settled() -> bool:
        dated = listed(f"{shop}sitemap.xml")
        return dated.items() <= listed(index).items() and f"{shop}c" in listed(*dated)

    assert two.run("event", "send", f"{shop}c", "--site", "shop").returncode == 0
    wait_until(settled, "the index has what the other host published")
    assert two.run("verify", "--site", "demo").returncode == 0
