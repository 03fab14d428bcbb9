"""Further outputs of a site as others read them: over HTTP, from real processes."""

from __future__ import annotations

import gzip
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

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
