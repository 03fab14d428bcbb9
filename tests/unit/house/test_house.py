"""The rules of the house that no linter knows (DESIGN 7)."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from tests.conftest import LONG

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("shared", "webhook", "worker", "deploy")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
SCRIPTS = sorted((ROOT / "shared").rglob("*.lua"))
LONGEST = 300


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_with_so_plain_a_name_is_the_one_of_this_repository(package: str) -> None:
    found = importlib.util.find_spec(package)

    assert found is not None
    assert str(ROOT / package / "__init__.py") == found.origin


def test_there_is_something_to_check() -> None:
    assert len(MODULES) > 40
    assert len(SCRIPTS) >= 10


@pytest.mark.parametrize("path", [*MODULES, *SCRIPTS], ids=name)
def test_a_module_is_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_a_script_names_its_keys_its_arguments_and_its_answer(path: Path) -> None:
    text = path.read_text()
    lines = text.splitlines()
    code = next(i for i, line in enumerate(lines) if not line.startswith("--"))
    head = "\n".join(lines[:code])

    assert re.search(r"^-- Returns ", head, re.MULTILINE)
    for kind in ("KEYS", "ARGV"):
        said = re.search(rf"^-- {kind} .*?(?=^-- [A-Z]|\Z)", head, re.MULTILINE | re.DOTALL)
        used = set(re.findall(rf"\b{kind}\[(\d+)\]", text))
        assert used <= set(re.findall(r"\d+", said[0] if said else ""))


@pytest.mark.parametrize("path", LONG)
def test_what_the_testers_begin_with_is_there(path: str) -> None:
    assert (ROOT / "tests" / path).exists()
