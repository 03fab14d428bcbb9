"""The state of a former release is served by this one; nothing is lost on the way and back."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.driver import System, wait_until

STATE = Path(__file__).parent / "former_release" / "state.tar.xz"
ENTRY = re.compile(r"<url><loc>([^<]*)</loc>(?:<lastmod>([^<]*)</lastmod>)?")
BASE = "https://www.example.com/"
CHANGED = {"pages-1.xml", "pages-4.xml", "sitemap.xml"}
"""Files of the events that waited for the former release."""
AGING = {"news-1.xml", "atom.xml", "rss.xml", "sitemap.html", "sitemap.css", ".sitemapd"}
"""Files that change with time, or with the release."""


def files(system: System) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in system.root.iterdir()}
    return {name: content for name, content in found.items() if name not in AGING}


def listed(system: System) -> dict[str, str | None]:
    """loc -> lastmod of every page but news, which is listed a second time for two days."""
    found: dict[str, str | None] = {}
    for name, content in files(system).items():
        if name.startswith("sitemap") or not name.endswith(".xml"):
            continue
        for loc, lastmod in ENTRY.findall(content.decode()):
            assert loc not in found, f"{loc} is listed twice"
            found[loc] = lastmod or None
    return found


def site(system: System) -> dict[str, Any]:
    status, _, body = system.get("/v1/sites/demo", authorization=f"Bearer {system.token}")
    assert status == 200, body
    return dict(json.loads(body))


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with tarfile.open(STATE) as archive:
        archive.extractall(tmp_path, filter="data")
    home = tmp_path / "home"
    (home / "redis").chmod(0o700)
    found = System(home)
    yield found
    found.end()


@pytest.mark.timeout(300)
def test_a_former_release_is_upgraded_gone_back_from_and_upgraded_again(system: System) -> None:
    before = files(system)
    expected = json.loads((system.home / "expected.json").read_text())

    system.start()
    system.quiet()

    after = files(system)
    assert listed(system) == expected
    assert {name for name in after if after[name] != before.get(name)} <= CHANGED
    assert before.keys() == after.keys()
    told = site(system)
    assert (told["layout"], told["dead_events"], len(told["held"])) == ("3", 3, 1)
    assert system.run("verify").returncode == 0
    # By their ids, which layout 2 stores in another way.
    system.send({"type": "delete", "id": "a999"}, {"type": "upsert", "id": "a997", "loc": BASE})
    system.quiet()
    for ident in ("997", "999"):
        expected.pop(f"{BASE}articles/00{ident}")
    expected[BASE] = None
    assert listed(system) == expected

    back = json.loads(system.run("migrate", "--rollback", "--json").stdout)[0]
    assert (back["was"], back["layout"], back["lost"]) == (3, 2, [])
    served = files(system)
    system.send({"type": "upsert", "loc": f"{BASE}meanwhile"})
    told = site(system)
    assert (told["layout"], told["waiting_events"]) == ("2, not migrated", 1)
    for command in ("doctor", "verify", "rebuild"):
        refused = system.run(command)
        assert refused.returncode
        assert "layout 2, to which it was moved back" in refused.stdout + refused.stderr
    assert files(system) == served

    for tenths in range(2, 10, 2):
        with subprocess.Popen(
            [system.program, "migrate"], env={**system.environment, "SITEMAPD_HOME": system.home},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as migration:  # fmt: skip
            try:
                migration.wait(tenths / 10)
            except subprocess.TimeoutExpired:
                migration.kill()
    wait_until(lambda: system.run("migrate").returncode == 0, "the site is migrated")
    system.quiet()

    expected[f"{BASE}meanwhile"] = None
    assert listed(system) == expected
    assert site(system)["layout"] == "3"
    assert system.run("verify").returncode == 0
