"""The first minute on a terminal: progress from the first second, and a box that names no 404."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.system.driver import SITEMAPD
from tests.system.terminal import Terminal


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal([SITEMAPD, "up", "--http", "127.0.0.1:0"], tmp_path)
    yield terminal
    terminal.close()


def test_a_first_start_ends_in_a_box_and_all_that_it_names_is_there(
    up: Terminal, tmp_path: Path
) -> None:
    assert up.until(r"starting in sitemapd-data \.\.\.\n")
    box = up.until(r"(?s)╭─+╮\n(.*)╰─+╯\n")[1]

    links = re.findall(r"http://\S+", box.split("try ")[0])
    assert [link.rpartition("/")[2].partition("?")[0] for link in links] == [
        "sitemap.xml", "sitemap.html", "login",
    ]  # fmt: skip
    for link in links:
        assert httpx.get(link, trust_env=False, follow_redirects=True).status_code == 200
    listed = httpx.get(links[0], trust_env=False).text
    (file,) = re.findall(r"<loc>(.*?)</loc>", listed)
    (page,) = re.findall(r"<loc>(.*?)</loc>", httpx.get(file, trust_env=False).text)
    assert httpx.get(page, trust_env=False).status_code == 200
    assert "secret" not in up.said
    assert "hexkey" not in up.said
    assert len(up.said.splitlines()) < 12

    found = re.search(r"try +(sitemapd .*?) *│", box)
    assert found
    done = subprocess.run(
        [SITEMAPD, *shlex.split(found[1])[1:]], cwd=tmp_path, capture_output=True, text=True,
        timeout=60, check=False, env={**os.environ, "SITEMAPD_HOME": "sitemapd-data"},
    )  # fmt: skip
    assert (done.returncode, "hello-world: added" in done.stdout) == (0, True), done.stderr
    assert up.interrupt() == 0


def test_on_a_narrow_terminal_the_addresses_stay_whole(tmp_path: Path) -> None:
    up = Terminal([SITEMAPD, "up", "--http", "127.0.0.1:0"], tmp_path, columns=60)
    try:
        shown = up.until(r"(?s)─{59}\n(.*)─{59}\n")[1]
    finally:
        up.close()

    assert re.search(r"(?m)^console +http://\S+once=[\w-]{43}$", shown)


def test_programs_are_told_as_json_what_is_served(tmp_path: Path) -> None:
    up = subprocess.Popen(
        [SITEMAPD, "up", "--json", "--home", tmp_path, "--http", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert up.stdout
    said = json.loads(up.stdout.readline())
    try:
        address = said["ready"]
        assert said == {
            "ready": address, "home": str(tmp_path), "sitemaps": {"demo": f"{address}/sitemap.xml"},
        }  # fmt: skip
        assert httpx.get(said["sitemaps"]["demo"], trust_env=False).status_code == 200
    finally:
        up.terminate()
        rest, _ = up.communicate(timeout=60)
    assert rest == ""
