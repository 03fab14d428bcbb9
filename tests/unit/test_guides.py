"""What documents say of the guides is computed from them, not remembered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deploy.commands.connect import CLIENTS
from webhook.sources.registry import REGISTRY

README = (Path(__file__).parents[2] / "README.md").read_text().partition("## Connect your CMS")[2]
ROWS = {row.split(" ")[1]: row for row in README.splitlines() if row.startswith("| ")}


def _first_word(name: str) -> str:
    return REGISTRY[name].GUIDE.title.split()[0].rstrip(",")


@pytest.mark.parametrize("name", CLIENTS)
def test_the_readme_counts_the_lines_of_the_file_to_add(name):
    found = re.search(r"a file of (\d+) lines", ROWS[_first_word(name)])

    assert found is not None
    assert int(found[1]) == len(CLIENTS[name].splitlines())


def test_the_readme_has_a_row_for_each_guide():
    assert {_first_word(name) for name in REGISTRY} <= ROWS.keys()
