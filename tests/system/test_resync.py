"""A resync over HTTP: the source is read by the worker, and what it says is published."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.driver import System, wait_until

BASE = "https://www.example.com"
CONFIG = """
[sites.demo]
base_url = "{base}"
web_root = "public"
secrets = ["whsec_{secret}"]
source = "ndjson:{source}"
"""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    """A running system whose site has a source."""
    system = System(tmp_path / "home")
    secret = base64.b64encode(bytes(32)).decode()
    config = CONFIG.format(base=BASE, secret=secret, source=system.home / "pages.ndjson")
    system.configure(config)
    system.start()
    yield system
    assert system.stop() == 0


def test_a_resync_brings_what_the_source_says(system: System) -> None:
    pages = [f"{BASE}/blog/{n}" for n in range(20)]
    rows = [json.dumps({"loc": page}) + "\n" for page in pages]
    (system.home / "pages.ndjson").write_text("".join(rows))
    system.send(*({"type": "upsert", "loc": page} for page in [*pages[:15], pages[0] + "/old"]))

    system.send({"type": "resync", "prefix": f"{BASE}/blog/"})

    wait_until(lambda: set(system.published()) == set(pages), "what the source says is published")
    system.quiet()
    assert system.run("verify", "--against", "configured").returncode == 0
