"""What documents say of the guides is computed from them, not remembered."""

from __future__ import annotations

import re
import statistics
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deploy.commands.connect import CLIENTS
from shared.config.sites.cms_connections import LEAST_SECRET
from webhook.request_body import MAX_ITEMS
from webhook.sources.guides import RUN, RUN_ALWAYS, Guide
from webhook.sources.registry import REGISTRY

ROOT = Path(__file__).parents[4]
README = (
    (ROOT / "webhook/README.md")
    .read_text()
    .partition("## Connect your CMS")[2]
    .partition("\n## ")[0]
)
ROWS = {row.split(" ")[1]: row for row in README.splitlines() if row.startswith("| ")}
VENDORS = (ROOT / "tests/system/cms/vendors.py").read_text()
CHECKED, DOCUMENTED = "checked against npm ", "from documentation, not run: "


def _first_word(name: str) -> str:
    return REGISTRY[name].GUIDE.title.split()[0].rstrip(",")


def _said(guide: Guide) -> str:
    return f"{guide.credential} {guide.steps} {guide.sends} {guide.caveats}"


def _vendor_tests() -> str:
    return "".join(path.read_text() for path in (ROOT / "tests/system/cms").glob("test_vendors*"))


@pytest.mark.parametrize("name", CLIENTS)
def test_the_readme_counts_the_lines_of_the_file_to_add(name):
    found = re.search(r"a file of (\d+) lines", ROWS[_first_word(name)])

    assert found is not None
    assert int(found[1]) == len(CLIENTS[name].splitlines())


def test_the_readme_has_a_row_for_each_guide():
    assert {_first_word(name) for name in REGISTRY} <= ROWS.keys()


def test_the_readme_says_how_long_an_adapter_is():
    found = re.search(r"of about (\d+) lines", README)
    sizes = [
        len((ROOT / f"webhook/sources/{name}.py").read_text().splitlines()) for name in REGISTRY
    ]

    assert found is not None
    assert round(statistics.median(sizes), -1) == int(found[1])


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_the_numbers_of_a_row_are_those_of_its_guide(name):
    """Ports, limits; lines of files are counted above."""
    row = re.sub(r"a file of \d+ lines|\b[A-Z]\w+ [\d.]+ \|", "", ROWS[_first_word(name)])

    assert set(re.findall(r"\b\d+\b", row)) <= set(
        re.findall(r"\b\d+\b", _said(REGISTRY[name].GUIDE))
    )


def test_the_ports_of_wordpress_are_told_alike():
    told = {
        tuple(re.findall(r"\b\d{2,5}\b", sentence))
        for text in (REGISTRY["wordpress"].GUIDE.caveats, REGISTRY["woocommerce"].GUIDE.caveats)
        for sentence in re.findall(r"ports other than ([\d, and]+)", text)
    }

    assert told == {("80", "443", "8080")}
    for row in ("WordPress", "WooCommerce"):
        assert "ports 80, 443 and 8080 only" in ROWS[row]


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_guide_asks_for_as_many_characters_as_the_configuration(name):
    told = re.findall(r"(\d+) characters or more", REGISTRY[name].GUIDE.credential)

    assert set(told) <= {str(LEAST_SECRET)}
    assert bool(told) == REGISTRY[name].GUIDE.chosen


def test_the_limits_that_clients_and_guides_tell_hold():
    found = re.search(r"len\(events\), (\d+)\).*holds ([\d,]+) at most", CLIENTS["wagtail"])

    assert found is not None
    assert int(found[1]) <= int(found[2].replace(",", "")) == MAX_ITEMS


@pytest.mark.parametrize("name", sorted(REGISTRY))
class TestHowItIsKnown:
    def test_every_claim_is_run_or_checked_or_cited(self, name):
        evidence = REGISTRY[name].GUIDE.evidence

        assert evidence
        for claim, source in evidence.items():
            assert claim
            assert source in {RUN, RUN_ALWAYS} or source.startswith((CHECKED, DOCUMENTED)), source

    def test_what_is_said_to_be_run_has_a_module_of_tests(self, name):
        for source in REGISTRY[name].GUIDE.evidence.values():
            folders = {RUN: ["system/cms"], RUN_ALWAYS: ["system", "integration"]}.get(source, [])
            assert not folders or any(
                any((ROOT / "tests" / folder).rglob(f"test_{name}.py")) for folder in folders
            )

    def test_what_is_said_to_be_run_by_hand_is_left_out_of_every_run(self, name):
        if RUN not in REGISTRY[name].GUIDE.evidence.values():
            return
        options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
        assert f"not cms_{name}" in options["ini_options"]["addopts"][-1]
        assert f"cms_{name}" in (ROOT / "Makefile").read_text()

    def test_what_is_said_to_be_checked_is_pinned_and_used_by_the_tests_of_vendors(self, name):
        for source in REGISTRY[name].GUIDE.evidence.values():
            if not source.startswith(CHECKED):
                continue
            packages = source.removeprefix(CHECKED).partition(":")[0]
            for package in packages.split(", "):
                called, _, version = package.partition(" ")
                assert f'"{called}": "{version}"' in VENDORS
                assert re.search(rf"""['"]{re.escape(called)}[/'"]""", _vendor_tests()), called
            assert re.search(rf'(?:guide|take)\(\s*"{name}"', _vendor_tests())

    def test_what_is_cited_has_an_address(self, name):
        for source in REGISTRY[name].GUIDE.evidence.values():
            if source.startswith(DOCUMENTED):
                for address in source.removeprefix(DOCUMENTED).split(" "):
                    assert urlsplit(address).scheme == "https", address
                    assert urlsplit(address).hostname
