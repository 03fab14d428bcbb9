"""Events sent by the options of `sitemapd event send`, and what the sitemap does then."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.driver import NAMESPACE, System

BASE = "https://www.example.com"
CONFIG = f"""
[sites.demo]
base_url = "{BASE}"
web_root = "public"
shrink_share = 1
secrets = ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="]
[sites.demo.outputs]
llms = true
"""
LINK = "{http://www.w3.org/1999/xhtml}link"


class Prompt(System):
    """A system, and the commands that are typed at its prompt."""

    def type(self, *words: str) -> dict[str, Any]:
        """Send an event and wait for its end; what each step said."""
        done = self.run("event", "send", *words, "--to", self.address, "--watch", "--json")
        assert done.returncode == 0, done.stderr
        return {each["step"]: each["what"] for each in json.loads(done.stdout)["steps"]}

    def links(self, page: str) -> set[tuple[str, str]]:
        """The alternates of a listed page: language and address."""
        for url in ET.parse(self.root / "pages-1.xml").getroot():
            if url.findtext(f"{NAMESPACE}loc") == f"{BASE}{page}":
                return {(each.get("hreflang", ""), each.get("href", "")) for each in url.iter(LINK)}
        return set()


@pytest.fixture(scope="module")
def prompt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prompt]:
    system = Prompt(tmp_path_factory.mktemp("prompt") / "home")
    system.configure(CONFIG)
    system.start()
    system.send(*(
        {"type": "upsert", "loc": f"{BASE}/{name}"}
        for name in ("", "404", "410", "moved", "moves", "busy")
    ))  # fmt: skip
    system.quiet()
    yield system
    system.end()


@pytest.mark.parametrize(
    ("page", "options", "why"),
    [
        ("/404", ["--status", "404"], "it answers 404"),
        ("/410", ["--status", "410"], "it answers 410"),
        ("/moved", ["--redirect-to", f"{BASE}/"], f"moved for good to {BASE}/"),
    ],
)
def test_a_page_that_is_gone_or_has_moved_leaves_the_sitemap(
    prompt: Prompt, page: str, options: list[str], why: str
) -> None:
    assert f"{BASE}{page}" in prompt.published()
    said = prompt.type(BASE + page, *options)

    assert why in said["decided"]
    assert said["published"] == "pages-1.xml, sitemap.xml"
    assert f"{BASE}{page}" not in prompt.published()
    assert f"{BASE}/" in prompt.published()


@pytest.mark.parametrize(
    ("page", "options"),
    [("/busy", ["--status", "503"]), ("/moves", ["--status", "302", "--redirect-to", f"{BASE}/"])],
)
def test_an_answer_that_may_pass_takes_no_page_out_and_is_warned_of(
    prompt: Prompt, page: str, options: list[str]
) -> None:
    said = prompt.type(BASE + page, *options)

    assert said["warning"].startswith(f"status: {options[1]} may pass: the page stays listed")
    assert f"{BASE}{page}" in prompt.published()


def test_versions_of_a_page_that_name_their_group_list_each_other(prompt: Prompt) -> None:
    prompt.type(f"{BASE}/en", "--group", "home", "--lang", "en", "--lang", "x-default")
    prompt.type(f"{BASE}/de", "--group", "home", "--lang", "de")

    both = {("de", f"{BASE}/de"), ("en", f"{BASE}/en"), ("x-default", f"{BASE}/en")}
    assert prompt.links("/de") == prompt.links("/en") == both


def test_a_title_and_a_description_are_those_of_llms_txt(prompt: Prompt) -> None:
    prompt.type(f"{BASE}/about", "--title", "About us", "--description", "Who makes this.")

    line = f"- [About us]({BASE}/about): Who makes this."
    assert line in (prompt.root / "llms.txt").read_text()


def test_a_file_of_events_takes_no_member_from_the_command_line(
    prompt: Prompt, tmp_path: Path
) -> None:
    (file := tmp_path / "events.json").write_text(f'{{"type": "upsert", "loc": "{BASE}/filed"}}')
    words = ("--file", str(file), "--status", "410", "--to", prompt.address)
    done = prompt.run("event", "send", *words)

    assert done.returncode != 0
    assert "the file states the events: leave out status" in done.stderr
    assert f"{BASE}/filed" not in prompt.published()
